# Makes a machine of its own of the namespaces that this runs in: what is installed here is there too, and what is changed there is seen
# there only. Stays until it is killed. Arguments: a folder for what is changed, the project's folder, its Node.
set -e
changes=$1 project=$2 node=$3
machine=$changes/machine
hostname debian
ip link set lo up
mkdir "$changes/upper" "$changes/work" "$machine"
mount -t overlay overlay -o "lowerdir=/,upperdir=$changes/upper,workdir=$changes/work" "$machine"
mount -t proc proc "$machine/proc"
mount --rbind /dev "$machine/dev"
mount -t tmpfs -o mode=0755 tmpfs "$machine/run"
mount -t tmpfs -o mode=0755 tmpfs "$machine/mnt"
mkdir "$machine/mnt/berth" "$machine/run/systemd" "$machine/run/systemd/system"
mount --bind "$project" "$machine/mnt/berth"
# A machine that Berth was never on.
rm -rf "$machine/etc/berth" "$machine/var/lib/berth" "$machine/root/.config/berth"
# Images for containers forbid packages to start services.
rm -f "$machine/usr/sbin/policy-rc.d"
# The index of manual pages takes long, and is not needed.
rm -f "$machine/var/lib/man-db/auto-update"
program() {
  printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$node" "$2" >"$machine/$1"
  chmod +x "$machine/$1"
}
mv "$machine/usr/bin/systemctl" "$machine/usr/bin/systemctl.real"
program usr/bin/systemctl /mnt/berth/test/three-machines/stand-in-systemctl.ts
# Where apt-get finds it too, which leaves /usr/local out.
cp "$project/test/three-machines/stand-ins/systemd-notify" "$machine/usr/bin/systemd-notify"
echo ready
# A shell, because something must reap the processes whose parents have ended.
exec chroot "$machine" bash -c "while :; do sleep 3600 & wait \$!; done"
