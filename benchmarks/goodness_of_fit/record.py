"""What was measured, kept on disk so that an interruption loses nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class Record:
    """What was measured, on disk after every step."""

    def __init__(self, path: Path):
        self.path = path
        self.content: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def entry(self, kind: str, key: str, empty: Any) -> Any:
        """What is known of it; ``empty`` where that is nothing."""
        return self.content.setdefault(kind, {}).setdefault(key, empty)

    def save(self) -> None:
        """Whole or not at all."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps(self.content, indent=1))
        fresh.replace(self.path)
