// The programs inside the tiny image: pure text. Only what busybox has may be called; a dollar sign with braces or a backtick
// would be TypeScript's, so there are none.

/** Process 1. */
export const tinyInit = String.raw`#!/bin/sh
# Process 1 of the tiny image: network, seed, greeting, user-data, web page, shell. Must reach 'berth: ready' whatever fails.
/bin/busybox mkdir -p /proc /sys /run /tmp /mnt /root /var/www /etc
/bin/busybox mount -t devtmpfs dev /dev
exec </dev/console >/dev/console 2>&1
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root TERM=vt100
hostname tiny
ip link set lo up

load() { for module; do insmod /modules/$module.ko 2>/dev/null; done; }

# The CD-ROM's drive takes its time to answer: it is asked while the network comes up.
load scsi_common scsi_mod libata
{ load ata_piix cdrom sr_mod isofs; } &
drive=$!

load button evdev virtio-rng
# The power button ends the guest at once: nothing of it needs saving.
for event in /sys/class/input/event*; do
  [ "$(cat $event/device/name 2>/dev/null)" = "Power Button" ] || continue
  { dd if=/dev/input/$(basename $event) of=/dev/null bs=24 count=1 2>/dev/null && echo "berth: power button" && sync && poweroff -f; } &
done

load virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci failover net_failover virtio_net virtio_blk virtio_console
for path in /sys/class/net/*; do
  interface=$(basename $path)
  [ $interface = lo ] && continue
  ip link set $interface up
  # Three seconds at most before the boot goes on; then it is asked for in the background for as long as it takes.
  udhcpc -i $interface -b -t 3 -T 1 -A 2 -S -s /bin/network-script >/dev/null 2>&1
done

wait $drive
# A slow machine may need seconds; without a drive nobody waits long.
tries=0
while [ ! -b /dev/sr0 ] && [ $tries -lt 30 ]; do sleep 0.1; tries=$((tries + 1)); done
# findfs of busybox looks only at /proc/partitions, where CD-ROMs are not: the label stands at byte 40 of sector 16.
seed=
for drive in /dev/sr*; do
  label=$(dd if=$drive bs=1 skip=32808 count=6 2>/dev/null | tr A-Z a-z)
  [ "$label" = cidata ] && seed=$drive && break
done
if [ -n "$seed" ] && mount -t iso9660 -o ro $seed /mnt; then
  cp /mnt/meta-data /mnt/user-data /run/ 2>/dev/null
  umount /mnt
  name=$(sed -n 's/^local-hostname: *"\{0,1\}\([A-Za-z0-9.-]*\).*/\1/p' /run/meta-data | head -n 1)
  [ -n "$name" ] && hostname "$name"
fi
name=$(hostname)
echo "127.0.0.1 localhost $name" >/etc/hosts

echo
echo "Welcome to $name. This is Berth's tiny image: Linux $(uname -r), a shell and a web page."
touch /run/late
for path in /sys/class/net/*; do
  interface=$(basename $path)
  [ $interface = lo ] && continue
  address=$(ip -4 -o addr show dev $interface | sed -n 's/.* inet \([0-9.]*\).*/\1/p' | head -n 1)
  [ -n "$address" ] && echo "berth: address $interface $address"
done
echo "Hello from $name." >/var/www/index.html
httpd -p 80 -h /var/www

if [ -f /run/user-data ]; then
  if [ "$(head -c 2 /run/user-data)" = "#!" ]; then
    chmod 700 /run/user-data
    (cd /root && exec /run/user-data) </dev/null
    echo "berth: user-data exited $?"
  elif grep -qvE '^(#.*|hostname:.*|preserve_hostname:.*|ssh_pwauth:.*|ssh_authorized_keys:.*| *- .*| *)$' /run/user-data; then
    echo "berth: user-data is not a script; the tiny image runs scripts that begin with #! and nothing else"
  fi
fi
echo "berth: ready"
while :; do setsid cttyhack sh; sleep 1; done
`;

/** What the DHCP client does with its lease. */
export const tinyNetworkScript = String.raw`#!/bin/sh
# What the DHCP client of the tiny image does with its lease.
case "$1" in
  deconfig) ip -4 addr flush dev $interface ;;
  bound | renew)
    ip -4 addr flush dev $interface
    ip addr add $ip/$mask dev $interface
    for gateway in $router; do ip route replace default via $gateway dev $interface; break; done
    for server in $dns; do echo "nameserver $server"; done >/etc/resolv.conf
    # The boot tells of what came in time.
    [ "$1" = bound ] && [ -e /run/late ] && echo "berth: address $interface $ip" >/dev/console
    ;;
esac
`;

/**
 * busybox with its wget under the name wgeT: its shell runs what it has itself before it looks into PATH, where `tinyWget` is. The names are sorted, and
 * this one has the same place. Undefined: it is not the busybox that we know.
 */
export function busyboxForWget(busybox: Buffer): Buffer | undefined {
  const [own, other] = ['\0wget\0', '\0wgeT\0'].map((name) => Buffer.from(name, 'latin1'));
  const at = own === undefined ? -1 : busybox.indexOf(own);
  if (own === undefined || other === undefined || at < 0 || busybox.indexOf(own, at + 1) >= 0) return undefined;
  return Buffer.concat([busybox.subarray(0, at), other, busybox.subarray(at + other.length)]);
}

/** Debian builds busybox without a time limit for wget, takes -T all the same, and writes its number to address 0: a segmentation fault each time. */
export const tinyWget = String.raw`#!/bin/sh
# wget with -T SECONDS, which Debian's busybox does not have: here it is for the whole of the request.
limit=0
left=$#
while [ $left -gt 0 ]; do
  word=$1
  shift
  left=$((left - 1))
  case "$word" in
    --timeout=*) limit=$(echo "$word" | cut -d = -f 2) && continue ;;
    -T | -[cqS]*T | --timeout)
      limit=$1
      shift
      left=$((left - 1))
      word=$(echo "$word" | sed 's/T$//; s/^--timeout$//; s/^-$//')
      [ -n "$word" ] || continue
      ;;
    -T[0-9]* | -[cqS]*T[0-9]*)
      limit=$(echo "$word" | sed 's/.*T//')
      word=$(echo "$word" | sed 's/T[0-9]*$//; s/^-$//')
      [ -n "$word" ] || continue
      ;;
    -[OoPYUt] | -[cqS]*[OoPYUt] | --header | --post-data | --post-file)
      set -- "$@" "$word"
      word=$1
      shift
      left=$((left - 1))
      ;;
  esac
  set -- "$@" "$word"
done
[ "$limit" = 0 ] && exec busybox wgeT "$@"
exec timeout "$limit" busybox wgeT "$@"
`;
