// The user-data of a guest with a program to run: finds the disk with it, unpacks it and starts the runner. Pure text, for cloud-init and
// for the tiny image; the boot must go on whatever becomes of the program.

export const bootstrapScript = String.raw`#!/bin/sh
# Starts the program of this guest's run.
export PATH="$PATH:/usr/sbin:/usr/bin:/sbin:/bin"
here=/var/lib/berth/run

# By its serial number; without one, by the name of its first file.
finddisk() {
  disk=/dev/disk/by-id/virtio-berth-run
  [ -e $disk ] && return
  for serial in /sys/block/*/serial; do
    [ -r "$serial" ] || continue
    word=
    read -r word <"$serial"
    [ "$word" = berth-run ] || continue
    disk=/dev/$(basename "$(dirname "$serial")")
    [ -e "$disk" ] && return
  done
  for disk in /dev/rdsk/*p0; do
    [ -c "$disk" ] && [ "$(dd if="$disk" bs=512 count=1 2>/dev/null | dd bs=9 count=1 2>/dev/null)" = berth-run ] && return
  done
  return 1
}

tries=0
until finddisk; do
  if [ $tries -ge 100 ]; then
    echo "berth: the disk with the program of this guest was not found" >/dev/console
    exit 1
  fi
  sleep 0.1 2>/dev/null || sleep 1
  tries=$((tries + 1))
done
[ -e $here ] && exit 0
mkdir -p $here && chmod 700 $here && cd $here || exit 1
if ! tar xf "$disk"; then
  echo "berth: the program of this guest could not be unpacked" >/dev/console
  exit 1
fi
mkdir -p work
if command -v setsid >/dev/null 2>&1; then
  setsid sh ./runner.sh $here </dev/null >runner.log 2>&1 &
else
  nohup sh ./runner.sh $here </dev/null >runner.log 2>&1 &
fi
exit 0
`;
