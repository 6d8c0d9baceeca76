"""Tests of `wordcount` on a mount whose provider is well, slow, failing and offline.

    pytest Examples/WordCount                 # needs the Python package of PromiseFS
    promisefs try --content FOLDER -- …       # the same without Python
"""
import time

from wordcount import count

CONTENT = {"one.txt": "a b c", "below/two.txt": "d e"}


def test_that_words_are_counted(promisefs_mounts):
    mount = promisefs_mounts(CONTENT)
    assert count(mount.path) == ({"one.txt": 3, "below/two.txt": 2}, [])


def test_that_a_slow_provider_is_waited_for(promisefs_mounts):
    mount = promisefs_mounts(CONTENT)
    mount.faults("delay=300ms", "only=fetchContents")
    begun = time.monotonic()
    assert count(mount.path)[1] == []
    assert time.monotonic() - begun >= 0.6


def test_that_it_goes_on_without_the_files_of_a_provider_that_is_offline(promisefs_mounts):
    mount = promisefs_mounts(CONTENT)
    assert (mount.path / "one.txt").read_text() == "a b c"
    list((mount.path / "below").iterdir())
    mount.faults("offline=true")
    words, problems = count(mount.path)
    assert words == {"one.txt": 3}
    assert problems == ["below/two.txt: Network is down"]


def test_that_what_is_written_while_the_provider_fails_arrives(promisefs_mounts):
    mount = promisefs_mounts(CONTENT)
    mount.faults("fail=2")
    (mount.path / "three.txt").write_text("f")
    mount.faults()
    mount.synchronize()
    assert (mount.cloud / "three.txt").read_text() == "f"


def test_that_a_mount_of_samples_is_gone_afterwards(promisefs_mount):
    assert (promisefs_mount.path / "Welcome.md").read_text().startswith("# Welcome")
