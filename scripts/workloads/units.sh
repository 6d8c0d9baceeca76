# Runs inside the Debian of scripts/test-units, as a unit of its systemd: mounts by units of the machine, by automount and by the
# units of a user. Says `ok` at the end, or stops at the line that failed.
set -eux
not() { if "$@"; then return 1; fi; }
wait_for() { for _ in $(seq 100); do if eval "$1"; then return 0; fi; sleep 0.2; done; echo "not in time: $1"; return 1; }

# A device of its own, which users may open; the machine's stays as it is.
umount -l /dev/fuse
rm -f /dev/fuse
mknod -m 666 /dev/fuse c 10 229
dpkg -i /root/promisefs_*.deb
mkdir -p /etc/promisefs /srv/cloud /mnt/unit /mnt/auto
echo one >/srv/cloud/file
printf '[domains.work]\nprovider = "folder:/srv/cloud"\nmountpoint = "/mnt/unit"\n' >/etc/promisefs/config.toml

: enable starts the unit of the machine, which has a filter and few capabilities
[ "$(promisefs enable work 2>&1)" = "work is mounted when the machine starts, and is mounted now" ]
[ "$(systemctl is-active promisefs@work) $(systemctl is-enabled promisefs@work) $(cat /mnt/unit/file)" = "active enabled one" ]
echo two >/mnt/unit/two
process() { pgrep -P "$(systemctl show -p MainPID --value promisefs@work)"; }
grep -q '^Seccomp:.*2' "/proc/$(process)/status"

: a daemon that is killed has a successor, and the unit goes on
kill -9 "$(process)"
wait_for '[ "$(cat /mnt/unit/two)" = two ]'
[ "$(systemctl show -p NRestarts --value promisefs@work)" = 0 ]

: one that hangs is found by the watchdog
mkdir -p /etc/systemd/system/promisefs@work.service.d
printf '[Service]\nWatchdogSec=6s\n' >/etc/systemd/system/promisefs@work.service.d/watchdog.conf
systemctl daemon-reload
systemctl restart promisefs@work
sleep 8
[ "$(systemctl show -p NRestarts --value promisefs@work)" = 0 ]
kill -STOP "$(process)"
wait_for '[ "$(systemctl show -p NRestarts --value promisefs@work)" = 1 ] && [ "$(systemctl is-active promisefs@work)" = active ]'
[ "$(cat /mnt/unit/two)" = two ]
[ "$(promisefs disable work 2>&1)" = "work is mounted by itself no longer" ]
not mountpoint -q /mnt/unit

: a line of fstab with automount mounts when somebody looks, and goes when nobody does
options=noauto,x-systemd.automount,x-systemd.idle-timeout=3s,_netdev,nofail,domain=auto
echo "folder:/srv/cloud /mnt/auto promisefs $options 0 0" >>/etc/fstab
systemctl daemon-reload
systemctl start mnt-auto.automount
[ "$(systemctl is-active mnt-auto.mount || true)" = inactive ]
[ "$(timeout 30 cat /mnt/auto/file)" = one ]
[ "$(systemctl is-active mnt-auto.mount)" = active ]
wait_for '[ "$(systemctl is-active mnt-auto.mount)" = inactive ]'
[ "$(timeout 30 cat /mnt/auto/two)" = two ]
systemctl stop mnt-auto.automount mnt-auto.mount

: a user sets up, and has it mounted by itself
useradd -m ann
loginctl enable-linger ann
id=$(id -u ann)
wait_for "[ -S /run/user/$id/bus ]"
hers() {
    setpriv --reuid ann --regid ann --init-groups env -i HOME=/home/ann USER=ann PATH=/usr/bin:/bin \
        "XDG_RUNTIME_DIR=/run/user/$id" "DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/$id/bus" "$@"
}
hers mkdir /home/ann/cloud
hers sh -c 'echo hers >/home/ann/cloud/file'
hers promisefs setup --yes --provider folder:/home/ann/cloud --name hers
[ "$(hers cat /home/ann/hers/file) $(hers systemctl --user is-active promisefs@hers)" = "hers active" ]
hers promisefs doctor
hers promisefs disable hers
not mountpoint -q /home/ann/hers

: a removal ends the mounts of all in order, and a purge takes what enable has made
promisefs enable work
hers promisefs enable hers
[ "$(cat /mnt/unit/two) $(hers cat /home/ann/hers/file)" = "two hers" ]
dpkg --remove promisefs
wait_for '[ "$(systemctl is-active promisefs@work)" = inactive ]'
not mountpoint -q /mnt/unit
not mountpoint -q /home/ann/hers
not pgrep promisefs
[ "$(cat /srv/cloud/two /home/ann/cloud/file | tr "\n" " ")" = "two hers " ]
dpkg --purge promisefs
[ ! -L /etc/systemd/system/multi-user.target.wants/promisefs@work.service ]
ls -d /var/lib/promisefs/work /etc/promisefs/config.toml /home/ann/.config/promisefs/config.toml
echo ok
