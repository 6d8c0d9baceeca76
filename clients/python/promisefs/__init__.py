"""Asks the daemon of a PromiseFS domain over its control socket. The standard library is enough.

    import promisefs

    domain, path = promisefs.locate("/mnt/report.pdf")
    print(domain.values([path], keys=["kMDItemFSSize", "promisefs.state"]))
    with domain.coordinate(promisefs.writing(path), timeout=30):
        with open("/mnt/report.pdf", "ab") as file:
            file.write(b"a line\\n")

Paths are bytes or text from the root of the domain. What the daemon refuses is raised as `PromiseError`. The protocol is
described in docs/openapi.yaml; every document is given as the dictionary that its JSON is.
"""
from .client import Domain
from .coordination import reading, writing
from .mounts import domains, locate
from .picking import pick
from .wire import PromiseError

__all__ = ["Domain", "PromiseError", "domains", "locate", "pick", "reading", "writing"]
