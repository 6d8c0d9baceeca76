#!/usr/bin/python3
"""A GTK 4 program that asks for a file by the dialog of its toolkit, and prints what it is told. Usage: gtk4_dialog.py OPEN|SAVE"""
import sys

import gi

gi.require_version("Gtk", "4.0")
from gi.repository import GLib, Gtk  # noqa: E402


def answered(dialog, answer):
    print(dialog.get_file().get_path() if answer == Gtk.ResponseType.ACCEPT else "cancelled", flush=True)
    program.quit()


def show(program):
    window = Gtk.ApplicationWindow(application=program)
    window.present()
    program.dialog = Gtk.FileChooserNative.new("Pick", window, getattr(Gtk.FileChooserAction, sys.argv[1]), None, None)
    if sys.argv[1] == "SAVE":
        program.dialog.set_current_name("new.txt")
    program.dialog.connect("response", answered)
    program.dialog.show()


program = Gtk.Application(application_id="com.example.Program")
program.connect("activate", show)
GLib.timeout_add_seconds(40, program.quit)
program.run([])
