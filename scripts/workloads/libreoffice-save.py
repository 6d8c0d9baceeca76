#!/usr/bin/env python3
"""Opens a document in LibreOffice, waits, changes a line of it and saves it in place, as its user would.

usage: libreoffice-save.py DOCUMENT LOADED PROCEED PROFILE

LOADED is made when the document is open, and PROCEED is waited for before it is changed and saved. PROFILE is a folder for
LibreOffice's settings. Needs the Python that LibreOffice's `uno` module was made for: on Debian /usr/bin/python3 with python3-uno.
"""
import os, subprocess, sys, time

import uno
from com.sun.star.beans import PropertyValue
from com.sun.star.connection import NoConnectException


def connect(pipe, seconds):
    local = uno.getComponentContext()
    resolver = local.ServiceManager.createInstanceWithContext("com.sun.star.bridge.UnoUrlResolver", local)
    end = time.time() + seconds
    while True:
        try:
            context = resolver.resolve(f"uno:pipe,name={pipe};urp;StarOffice.ComponentContext")
            return context.ServiceManager.createInstanceWithContext("com.sun.star.frame.Desktop", context)
        except NoConnectException:
            if time.time() > end:
                sys.exit("LibreOffice does not answer")
            time.sleep(0.1)


def save(desktop, path, loaded, proceed):
    document = desktop.loadComponentFromURL(uno.systemPathToFileUrl(path), "_blank", 0, (PropertyValue("Hidden", 0, True, 0),))
    if document is None or document.isReadonly():
        sys.exit("the document cannot be opened for editing")
    open(loaded, "w").close()
    while not os.path.exists(proceed):
        time.sleep(0.02)
    search = document.createReplaceDescriptor()
    search.SearchRegularExpression = True
    search.SearchString, search.ReplaceString = "line 7$", "line seven"
    if document.replaceAll(search) != 1:
        sys.exit("the line is not there")
    document.store()
    document.close(True)


def main():
    path, loaded, proceed, profile = sys.argv[1:]
    pipe = f"promisefs-{os.getpid()}"
    office = subprocess.Popen(
        ["soffice", "--headless", "--norestore", "--nologo", "--nodefault", f"--accept=pipe,name={pipe};urp",
         f"-env:UserInstallation=file://{profile}"])
    try:
        desktop = connect(pipe, 60)
        save(desktop, os.path.realpath(path), loaded, proceed)
        try:
            desktop.terminate()
        except Exception:
            # The connection ends with the program.
            pass
        office.wait(30)
    finally:
        if office.poll() is None:
            office.kill()


main()
