"""How long measures take and what they hold, beside other packages that do the nearest thing."""
