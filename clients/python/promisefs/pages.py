"""What programs have written through mappings, which no daemon sees while it is in the kernel's pages."""
import ctypes
import os
import threading

# Of a daemon that does not answer, which the next request says.
_PATIENCE_SECONDS = 10


def _flush(mount_point):
    try:
        folder = os.open(mount_point, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return
    try:
        ctypes.CDLL(None).syncfs(folder)
    finally:
        os.close(folder)


def _flush_pages(mount_point):
    """The kernel gives a mount's daemon what it has (syncfs(2)). A daemon that waited for itself would wait for ever."""
    thread = threading.Thread(target=_flush, args=(mount_point,), daemon=True)
    thread.start()
    thread.join(_PATIENCE_SECONDS)
