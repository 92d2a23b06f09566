"""Message histories: what they say about tools, and what must not be sent on.

`scan` reads what was discovered and called, for the agent's state; `strip` gives the history that
can be sent; `compacted` puts a snapshot before what is left of a history that was summarised.
"""

from toolgate.history._snapshot import SeenCall
from toolgate.history.scan import History, compacted, scan
from toolgate.history.strip import Reason, Removed, Stripped, strip

__all__ = [
    "History",
    "Reason",
    "Removed",
    "SeenCall",
    "Stripped",
    "compacted",
    "scan",
    "strip",
]
