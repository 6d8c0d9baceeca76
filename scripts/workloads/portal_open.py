#!/usr/bin/python3
"""Calls org.freedesktop.portal.FileChooser as a program of the desktop does, and prints the answer.
Usage: portal_open.py METHOD [FILE…]     FILE: the names of what is to be saved"""
import os
import sys

from gi.repository import Gio, GLib

bus, loop = Gio.bus_get_sync(Gio.BusType.SESSION), GLib.MainLoop()
token = f"t{os.getpid()}"
request = f"/org/freedesktop/portal/desktop/request/{bus.get_unique_name()[1:].replace('.', '_')}/{token}"


def answered(*arguments):
    print("answer", arguments[-1].unpack(), flush=True)
    loop.quit()


bus.signal_subscribe(None, "org.freedesktop.portal.Request", "Response", request, None, 0, answered)
options = {"handle_token": GLib.Variant("s", token),
           "filters": GLib.Variant("a(sa(us))", [("Pictures", [(0, "*.png"), (1, "image/png")])])}
if sys.argv[1] == "SaveFile":
    del options["filters"]
    options["current_name"] = GLib.Variant("s", sys.argv[2])
elif sys.argv[2:]:
    del options["filters"]
    options["files"] = GLib.Variant("aay", [os.fsencode(name) + b"\0" for name in sys.argv[2:]])
bus.call_sync("org.freedesktop.portal.Desktop", "/org/freedesktop/portal/desktop", "org.freedesktop.portal.FileChooser",
              sys.argv[1], GLib.Variant("(ssa{sv})", ("", "Pick one", options)), None, 0, 5000, None)
GLib.timeout_add_seconds(20, lambda: (print("no answer in 20 s"), loop.quit()))
loop.run()
