#!/usr/bin/env bash
# Sets a domain up whose password the desktop keeps, in a session bus of its own with GNOME's keyring.
# usage: dbus-run-session -- bash secret-service.sh     variables as MountTests have them; U: a WebDAV server, NAME: the domain
set -euo pipefail
not() { if "$@"; then return 1; fi; }
eval "$(printf 'keyring\n' | gnome-keyring-daemon --unlock --components=secrets 2>/dev/null)"
export PROMISEFS_STATE_DIR="$T/states"
settings=$XDG_CONFIG_HOME/promisefs
echo here >"$D/data/file"
printf 'promisefs-secret\n' >"$T/password"
printf 'wrong\n' >"$T/wrong"

"$P" setup --yes --no-enable --provider "webdav+${U/:\/\//:\/\/promisefs@}/" --name "$NAME" --mountpoint "$M" --password-file "$T/password" >"$T/said"
grep -q 'the password is in the Secret Service' "$T/said"
grep -q '^secret-service = true' "$settings/credentials"
not grep -rq promisefs-secret "$settings"
[ "$(cat "$M/file")" = here ]
found=0
for process in /proc/[0-9]*; do
    tr '\0' ' ' <"$process/cmdline" 2>/dev/null | grep -qF "$M" || continue
    found=$((found + 1))
    not grep -qa promisefs-secret "$process/environ"
    not grep -qa promisefs-secret "$process/cmdline"
done
[ "$found" -ge 2 ]
# A successor asks again.
kill -9 "$("$P" status --json "$M" | sed 's/.*"processID":\([0-9]*\).*/\1/')"
for _ in $(seq 100); do if mountpoint -q "$M" && "$P" status "$M" >"$T/said" 2>&1; then break; fi; sleep 0.2; done
echo more >"$D/data/more"
"$P" sync --wait "$M"
[ "$(cat "$M/more")" = more ]
"$P" doctor >"$T/found" || { cat "$T/found"; exit 1; }
grep -q "^ok *server of $NAME: answers" "$T/found"
"$P" unmount --wait "$M"
# What speaks with the server without a daemon asks as well.
"$P" verify --provider --domain "$NAME"
"$P" provider check "webdav+${U/:\/\//:\/\/promisefs@}/" --domain "$NAME" >"$T/checked"

# Without a bus it is a passing trouble, which is told; what is here is mounted.
DBUS_SESSION_BUS_ADDRESS= "$P" mount "$NAME" 2>"$T/said"
"$P" status "$M" >>"$T/said"
grep -q 'unlock the keyring' "$T/said" || { cat "$T/said"; exit 1; }
[ "$(cat "$M/more")" = more ]
"$P" unmount "$M"
DBUS_SESSION_BUS_ADDRESS= "$P" doctor >"$T/found" || true
grep -q 'problem Secret Service: .*no session bus' "$T/found"

# What the server refuses is not kept; what it takes is, also in the file.
status=0
"$P" login "$NAME" --password-file "$T/wrong" || status=$?
[ "$status" = 5 ]
"$P" mount "$NAME"
"$P" unmount "$M"
"$P" login --no-secret-service "$NAME" --password-file "$T/password"
grep -q '^password = promisefs-secret' "$settings/credentials"
not grep -q secret-service "$settings/credentials"
DBUS_SESSION_BUS_ADDRESS= "$P" mount "$NAME"
"$P" unmount "$M"
PROMISEFS_PASSWORD=promisefs-secret "$P" login "$NAME" | grep -q 'in the Secret Service'
not grep -q promisefs-secret "$settings/credentials"
mkdir "$T/elsewhere"
"$P" migrate "$NAME" "folder:$T/elsewhere"
[ "$(cat "$T/elsewhere/more")" = more ]
