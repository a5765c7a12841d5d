"""The version, alone in its module so that packaging can read it without loading anything."""

__version__ = "0.1.0"
