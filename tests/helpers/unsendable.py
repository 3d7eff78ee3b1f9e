"""A function whose error other processes cannot send back."""


def refusing():
    """Return a function that raises an error as those of clients of web services, which cannot be unpickled.

    Local definitions are pickled by value: processes that do not know this module can call the function.
    """

    class QuotaError(Exception):
        def __init__(self, status, text):
            super().__init__(text)
            self.status = status

    def refused(_):
        raise QuotaError(429, "no more requests today")

    return refused
