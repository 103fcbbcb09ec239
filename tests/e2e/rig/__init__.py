"""The end-to-end rig: real API servers, a world in them, and our controller beside them.

Python's standard library only. Everything runs on loopback, in processes of this rig's own, and is
gone when the rig is.
"""
