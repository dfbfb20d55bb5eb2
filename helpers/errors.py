"""The one exception that learners are meant to read."""


class LabError(Exception):
    """What is wrong and what to do next, in a sentence or two."""

    def _render_traceback_(self) -> list[str]:
        """IPython calls this: show the sentence, not forty lines of stack."""
        return [f"LabError: {self}"]


def first_line(problem: BaseException, longest: int = 300) -> str:
    """The start of an error's text, for use inside a sentence."""
    text = str(problem).strip()
    return text.splitlines()[0][:longest].rstrip(".") if text else type(problem).__name__
