"""What people look at: tables today."""
