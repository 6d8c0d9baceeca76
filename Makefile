# The commands of this repository. Each line after `##` is what `make` prints about a target.

MOUNTPOINT ?= ./mnt
PROVIDER ?=
PREFIX ?= /usr/local
DESTDIR ?=
export MOUNTPOINT PROVIDER PREFIX DESTDIR

.DEFAULT_GOAL := help
.PHONY: help build helper install uninstall deb mount unmount test bench format format-check clean

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | \
	  while IFS="$$(printf '\t')" read -r name text; do printf '  make %-13s %s\n' "$$name" "$$text"; done

build:  ## build the executable, .build/release/promisefs
	@scripts/set-up build
	swift build -c release --product promisefs
	swift build -c release --product promisefs-holder
	swift build -c release --product promisefs-echo
	swift build -c release --product promisefs-view
	swift build -c release --product promisefs-locks
	swift build -c release --product promisefs-backing
	swift build -c release --product promisefs-portal

helper: build  ## as root: let ordinary users have kernel passthrough (gives one small program CAP_SYS_ADMIN)
	install -D -m 0755 .build/release/promisefs-backing /usr/local/libexec/promisefs/promisefs-backing
	setcap cap_sys_admin+ep /usr/local/libexec/promisefs/promisefs-backing

install:  ## install what was built below PREFIX, /usr/local (DESTDIR=… for a root elsewhere)
	@scripts/install command desktop portal

uninstall:  ## remove what `make install` installed; domains, settings and content stay
	@scripts/install --uninstall command desktop portal

deb:  ## build the Debian packages into .build/deb
	@scripts/package

mount:  ## set up what is missing, build, and mount the embedded cloud on ./mnt (or MOUNTPOINT=…; PROVIDER=webdav or s3: a server)
	@scripts/mount

unmount:  ## unmount it again; work that is not uploaded yet is kept for the next mount
	@scripts/unmount

test:  ## set up what is missing, build, and run every test
	@scripts/test

bench:  ## measure a mount, the file system below it and peers (BENCH="--only fio …"; Benchmarks/all is everything)
	@scripts/set-up bench
	swift build -c release --product promisefs
	swift build -c release --product promisefs-holder
	Benchmarks/run $(BENCH)

format:  ## format the Swift sources
	swift format --in-place --recursive --parallel Sources Mount Tests Package.swift

format-check:  ## say which Swift sources are not formatted
	swift format lint --strict --recursive --parallel Sources Mount Tests Package.swift

clean:  ## remove what was built
	swift package clean
