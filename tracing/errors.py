"""The one exception that a user sees: the problem, and the remedy."""


class Problem(Exception):
    """Bad input or a machine that lacks something; printed without a traceback, exit status 2.

    problem -- what was found and what was needed, lower case, with the file or launch
    remedy  -- what most often helps, a command where there is one
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy
