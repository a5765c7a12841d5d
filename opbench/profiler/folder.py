"""Whether a folder takes files, asked before the work whose result would be lost."""

from __future__ import annotations

from pathlib import Path

__all__ = ["folder_problem"]


def folder_problem(folder: Path) -> str:
    """Why files cannot be created in ``folder`` (made if missing), or an empty string.

    A file is really created: of file systems that take none, permissions tell nothing, and to root
    they always allow it.
    """
    # Imported here, since it brings half of the standard library into every pytest.
    import tempfile

    try:
        for part in (*reversed(folder.parents), folder):
            if part.is_symlink() and not part.exists():
                return f"{part.name} is a link to {part.readlink()}, which does not exist"
            if part.exists() and not part.is_dir():
                return f"{part.name} is a file"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return error.strerror or str(error)
    except ValueError as error:  # a name that no file can have, such as one with a NUL
        return str(error)
    return ""
