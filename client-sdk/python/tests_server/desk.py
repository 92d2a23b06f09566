"""Tools with memory, so that a test sees which of them ran."""

from toolgate import SEARCH_TOOL, ToolSettings, has_prior_tool_output, is_authenticated

FIND, CREATE, DELETE = (f"mcp__notes__{n}" for n in ("find_notes", "create_note", "delete_note"))
FORECAST = "mcp__weather__get_forecast"
SEARCH = SEARCH_TOOL.model_name
GUARDED = ToolSettings(
    "delete_note", precondition=is_authenticated("notes:delete") & has_prior_tool_output(FIND)
)


class Desk:
    """Notes and weather."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def find_notes(self, text: str) -> str:
        """Search through the notes that were written earlier."""
        self.ran.append("find_notes")
        return f"one note about {text}"

    def create_note(self, title: str) -> str:
        """Write down a new note so that it can be found again later."""
        self.ran.append("create_note")
        return f"created {title}"

    def delete_note(self, title: str) -> str:
        """Delete a note forever."""
        self.ran.append("delete_note")
        return f"deleted {title}"

    def get_forecast(self, city: str) -> str:
        """Get the weather forecast for a city for the coming days."""
        self.ran.append("get_forecast")
        return f"rain in {city}"


def clock() -> str:
    """Tell the time."""
    return "noon"
