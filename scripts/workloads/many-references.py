#!/usr/bin/env python3
"""Makes many containers and references, and looks what reading one, and renaming what they stand for, costs.

usage: many-references.py --executable PROMISEFS [--containers 1000] [--references 100000] [--documents 10000] [--folder DIR]

The references, in folders of a thousand, stand for documents of one folder. Then of some references, one after the other, `readlink`
must be one request each at most, and take as long among many as it took among a hundred; a rename of the documents' folder must take no longer
than that of an empty one, and read nothing; and each reference must lead to its document afterwards. `container list` must have all of
them. Prints what it measured; exit status 1 when anything is wrong.
"""
import argparse, concurrent.futures, json, os, random, shutil, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../../clients/python")]
import promisefs
from domain import Failed, Mount

SAMPLES = 500


def in_parallel(calls):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for _ in pool.map(lambda call: call(), calls):
            pass


def requests(domain, kind):
    return domain.status()["requests"].get(kind, 0)


def readlink_time(domain, links, what):
    """Of one, in microseconds: the median. Each is one request at most: the kernel keeps what it has read until the tree changes."""
    before, times = requests(domain, "readlink"), []
    for link in links:
        start = time.perf_counter()
        os.readlink(link)
        times.append((time.perf_counter() - start) * 1e6)
    count = requests(domain, "readlink") - before
    if count > len(links):
        raise Failed(f"{len(links)} calls of readlink were {count} requests")
    median = sorted(times)[len(times) // 2]
    print(f"{what}: readlink {median:.0f} µs, {count} requests for {len(links)} calls", flush=True)
    return median


def rename_time(domain, folder):
    """The shortest of some, there and back, in microseconds, and which requests the daemon got for it."""
    times, other = [], folder + " renamed"
    before = domain.status()["requests"]
    for _ in range(5):
        start = time.perf_counter()
        os.rename(folder, other)
        times.append((time.perf_counter() - start) * 1e6)
        os.rename(other, folder)
    after = domain.status()["requests"]
    read = after.get("readlink", 0) - before.get("readlink", 0)
    if read:
        raise Failed(f"a rename has read {read} references")
    return min(times)


def check(domain, options, choose):
    os.environ.update(domain.environment)
    client = promisefs.locate(domain.top)[0]
    documents, empty = os.path.join(domain.top, "documents"), os.path.join(domain.top, "empty")
    os.mkdir(documents)
    os.mkdir(empty)
    for number in range(options.documents):
        with open(f"{documents}/d{number}", "w") as file:
            file.write(f"document {number}")
    domain.settle(timeout=1200)
    start = time.monotonic()
    in_parallel(lambda number=number: client.add_container(f"com.example.a{number}") for number in range(options.containers))
    listed = {each["application"] for each in client.containers()["containers"]}
    if len(listed) != options.containers:
        raise Failed(f"of {options.containers} containers {len(listed)} are listed")
    print(f"{options.containers} containers in {time.monotonic() - start:.0f} s", flush=True)

    def place(number):
        return f"links{number // 1000}/{number}"

    def make(numbers):
        for folder in {os.path.dirname(place(number)) for number in numbers}:
            os.makedirs(os.path.join(domain.top, folder), exist_ok=True)
        in_parallel(lambda number=number: client.add_reference(f"documents/d{number % options.documents}", place(number)) for number in numbers)

    make(range(100))
    few = readlink_time(domain, [os.path.join(domain.top, place(number)) for number in range(100)] * 5, "100 references")
    start = time.monotonic()
    make(range(100, options.references))
    print(f"{options.references} references in {time.monotonic() - start:.0f} s", flush=True)
    domain.settle(timeout=3600)
    chosen = choose.sample(range(options.references), min(SAMPLES, options.references))
    links = [os.path.join(domain.top, place(number)) for number in chosen]
    many = readlink_time(domain, links, f"{options.references} references")
    if many > 3 * few + 200:
        raise Failed(f"among many readlink takes {many:.0f} µs, among a hundred {few:.0f}")
    readlink_time(domain, links, "the same again")
    bare, full = rename_time(domain, empty), rename_time(domain, documents)
    print(f"rename of an empty folder {bare:.0f} µs, of {options.documents} documents with references {full:.0f} µs", flush=True)
    if full > 5 * bare + 1000:
        raise Failed("a rename of what references stand for takes longer")
    os.rename(documents, os.path.join(domain.top, "elsewhere"))
    for number, link in zip(chosen, links):
        if os.readlink(link) != f"../elsewhere/d{number % options.documents}":
            raise Failed(f"{link} leads to {os.readlink(link)}")
    domain.run("verify", domain.top, timeout=600)
    print("each leads to its document, and verify is clean", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executable", required=True)
    parser.add_argument("--containers", type=int, default=1_000)
    parser.add_argument("--references", type=int, default=100_000)
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--folder", default="/var/tmp")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    top = tempfile.mkdtemp(prefix="pfs-references-", dir=options.folder)
    domain = Mount(options.executable, top, name=f"references{os.getpid()}", upload_delay="0s")
    wrong = 0
    try:
        domain.mount()
        check(domain, options, random.Random(options.seed))
    except (Failed, promisefs.PromiseError, OSError) as problem:
        print(f"WRONG {problem}", flush=True)
        wrong = 1
    finally:
        domain.clean_up()
        shutil.rmtree(top, ignore_errors=True)
    sys.exit(wrong)


if __name__ == "__main__":
    main()
