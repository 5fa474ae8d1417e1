"""The one exception that a user sees, the problem and the remedy; and what any other exception says."""


class Problem(Exception):
    """Bad input or a machine that lacks something; printed without a traceback, exit status 2.

    problem -- what was found and what was needed, lower case, with the file or launch
    remedy  -- what most often helps, a command where there is one
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy


def message(error: BaseException) -> str:
    """The message of any exception, as text that can be encoded; `__str__` of a user's own may raise."""
    try:
        text = str(error)
    except Exception as other:
        return f"its message cannot be had: {type(other).__name__}"
    return text.encode(errors="backslashreplace").decode()
