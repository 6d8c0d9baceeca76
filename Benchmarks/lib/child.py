"""Runs one step in a process of its own, so that a file system that hangs costs one row and not the run.

usage: child.py MODULE STEP FOLDER CONFIGURATION [USER:GROUP]
"""
import importlib, json, os, signal, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))


def run_step(module, step, folder, configuration, timeout, account=None):
    """(value, failure): one of the two is None, both for a step that measures nothing."""
    identity = [f"{account.user}:{account.group}"] if account else []
    # -B: nothing is left beside the sources.
    process = subprocess.Popen(
        [sys.executable, "-B", os.path.abspath(__file__), module, step, folder, json.dumps(configuration), *identity],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, cwd="/")
    try:
        output, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        kill(process)
        return None, f"took longer than {timeout:.0f} s"
    except BaseException:
        kill(process)
        raise
    try:
        answer = json.loads(output.decode().strip().splitlines()[-1])
    except (ValueError, IndexError):
        return None, "died: " + errors.decode(errors="replace").strip()[-200:]
    return answer.get("value"), answer.get("failure")


def kill(process):
    """With everything it started. One that hangs in the kernel stays behind until its mount is detached."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=20)
    except (ProcessLookupError, subprocess.TimeoutExpired):
        pass


def become(identity):
    """Only once everything is imported: the other user may not be allowed to read this interpreter's modules."""
    user, group = identity.split(":")
    os.setgroups([])
    os.setgid(int(group))
    os.setuid(int(user))


def main(module, step, folder, configuration, identity=None):
    sys.path.insert(0, os.path.dirname(HERE))
    try:
        function = getattr(importlib.import_module("lib.workloads." + module), step.replace("-", "_"))
        if identity:
            become(identity)
        return {"value": function(folder, json.loads(configuration))}
    # Whatever goes wrong in a file system under test is a result, and must not look like a number.
    except Exception as error:
        text = str(error) if type(error).__name__ in ("Wrong", "CommandFailed") else f"{type(error).__name__}: {error}"
        return {"failure": text.replace(folder, "").replace("\n", " ")[:240]}


if __name__ == "__main__":
    # Python puts the folder of this file first; its modules are imported as `lib.…` only.
    sys.path = [path for path in sys.path if os.path.abspath(path or ".") != HERE]
    print(json.dumps(main(*sys.argv[1:])))
