"""Fills a bucket of Ceph's gateway with empty objects by writing into its index: a million in a minute, and not in an hour.

usage: fill_bucket.py CEPH_CONF TEMPLATE_KEY PREFIX FOLDERS OBJECTS     run by a Python that has Debian's python3-rados

The keys are PREFIX/00000/0000000, or PREFIX/0000000 with 0 folders; OBJECTS is how many there are in all. Each entry is the
template's with another name, so a listing shows them; there is nothing to GET behind them.
"""
import sys

import rados

POOL = "default.rgw.buckets.index"
BATCH = 20_000


def keys(prefix, folders, objects):
    each = objects // max(folders, 1)
    for number in range(each * max(folders, 1)):
        yield f"{prefix}/{number // each:05}/{number % each:07}" if folders else f"{prefix}/{number:07}"


def template_of(pool, shards, key):
    for shard in shards:
        with rados.ReadOpCtx() as operation:
            found, _ = pool.get_omap_vals_by_keys(operation, (key,))
            pool.operate_read_op(operation, shard)
            for _, value in found:
                return value
    sys.exit(f"fill_bucket: there is no '{key}' in the index")


def entry(template, old, new):
    """The name is stored twice, each time after its length; the lengths around them are of the whole (RGW's encoding)."""
    old, new = old.encode(), new.encode()
    if len(old) != len(new):
        sys.exit(f"fill_bucket: the template's name must be as long as '{new.decode()}'")
    return template.replace(old, new)


def main(configuration, template_key, prefix, folders, objects):
    with rados.Rados(conffile=configuration, name="client.admin") as cluster, cluster.open_ioctx(POOL) as pool:
        shards = [each.key for each in pool.list_objects() if each.key.startswith(".dir.")]
        template = template_of(pool, shards, template_key)
        batch = []

        def write():
            # Evenly, as the gateway does: it takes a part of each page from each shard.
            for number, shard in enumerate(shards):
                part = batch[number :: len(shards)]
                with rados.WriteOpCtx() as operation:
                    pool.set_omap(operation, tuple(part), tuple(entry(template, template_key, key) for key in part))
                    pool.operate_write_op(operation, shard)

        for key in keys(prefix, int(folders), int(objects)):
            batch.append(key)
            if len(batch) == BATCH:
                write()
                batch = []
        write()


if __name__ == "__main__":
    main(*sys.argv[1:])
