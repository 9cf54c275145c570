// What makes a plain Debian 12 a guest: the files and units of the image `debian-12`. Pure text.

/** Installed besides Debian's minimal base. */
export const guestPackages = [
  'linux-image-cloud-amd64', // the flavour for virtual machines: it has virtio, and the CD-ROM drive of the seed
  'initramfs-tools',
  'systemd-sysv',
  'systemd-resolved',
  'systemd-timesyncd',
  'dbus',
  'udev',
  'cloud-init',
  'cloud-guest-utils', // growpart
  'fdisk', // growpart's hands
  'e2fsprogs',
  'openssh-server',
  'netbase',
  'iproute2',
  'iputils-ping',
  'sudo',
  'qemu-guest-agent', // "berth exec", and an orderly power-off where ACPI is not heeded
  'ca-certificates',
] as const;

/** Manuals and translations stay out: they are not read in a fleet's guest, and they would be half of the small files. */
export const packageFilter = [
  'path-exclude=/usr/share/man/*',
  'path-exclude=/usr/share/doc/*',
  'path-include=/usr/share/doc/*/copyright',
  'path-exclude=/usr/share/locale/*',
  'path-include=/usr/share/locale/locale.alias',
] as const;

const noUdev = `#!/bin/sh
# Takes the place of udev's own script of this name.
exit 0
`;

/** In the image before packages are configured: what the kernel's first file system is made from. */
export const earlyFiles: Readonly<Record<string, string>> = {
  '/etc/initramfs-tools/conf.d/berth.conf': `# Only what a virtual machine's disk needs.
MODULES=list
BUSYBOX=n
COMPRESS=gzip
FSTYPE=ext4
RESUME=none
`,
  '/etc/initramfs-tools/modules': 'virtio_pci\nvirtio_blk\n',
  // The modules above are loaded by name, so the first file system needs no udev: it would look at every device twice.
  '/etc/initramfs-tools/scripts/init-top/udev': noUdev,
  '/etc/initramfs-tools/scripts/init-bottom/udev': noUdev,
};

export const bootMenu = `DEFAULT berth
PROMPT 0
TIMEOUT 0
LABEL berth
  KERNEL /vmlinuz
  INITRD /initrd
  APPEND root=PARTUUID=be274012-02 ro console=ttyS0 quiet systemd.show_status=true net.ifnames=0 cryptomgr.notests
`;
export const diskId = 0xbe274012;

export const files: Readonly<Record<string, string>> = {
  '/etc/fstab': `PARTUUID=be274012-02 / ext4 errors=remount-ro 0 1
PARTUUID=be274012-01 /boot/loader vfat noauto,umask=0077 0 0
`,
  '/etc/hostname': 'debian\n',
  '/etc/hosts': '127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n',
  '/etc/machine-id': '', // made at first boot: guests of one image are different machines
  '/etc/default/locale': 'LANG=C.UTF-8\n',
  '/etc/apt/sources.list': `deb http://deb.debian.org/debian bookworm main
deb http://deb.debian.org/debian bookworm-updates main
deb http://security.debian.org/debian-security bookworm-security main
`,
  // The loader reads a FAT partition, which dpkg cannot unpack a kernel to; so a new kernel is copied there.
  '/etc/initramfs/post-update.d/berth-loader': `#!/bin/sh
# Copies the kernel and its first file system to where the boot loader finds them.
set -e
version="$1"
[ -n "$version" ] && [ -f "/boot/vmlinuz-$version" ] && [ -f "/boot/initrd.img-$version" ] || exit 0
mkdir -p /boot/loader
mount /boot/loader 2>/dev/null || exit 0
trap 'umount /boot/loader' EXIT
cp "/boot/vmlinuz-$version" /boot/loader/vmlinuz.new
cp "/boot/initrd.img-$version" /boot/loader/initrd.new
mv -f /boot/loader/vmlinuz.new /boot/loader/vmlinuz
mv -f /boot/loader/initrd.new /boot/loader/initrd
`,
  '/etc/cloud/cloud.cfg.d/90-berth.cfg': `# Looked for nowhere but on the seed: asking for other clouds costs seconds.
datasource_list: [NoCloud, None]
manage_etc_hosts: localhost
ssh_genkeytypes: [ed25519, ecdsa]
system_info:
  network:
    renderers: [networkd]
    activators: [networkd]
# Without those for software that is not in the image.
cloud_init_modules: [migrator, seed_random, bootcmd, write-files, growpart, resizefs, disk_setup, mounts, set_hostname, update_hostname, update_etc_hosts, ca-certs, users-groups, ssh]
cloud_config_modules: [ssh-import-id, locale, set-passwords, apt-pipelining, apt-configure, ntp, timezone, runcmd]
cloud_final_modules: [package-update-upgrade-install, write-files-deferred, scripts-vendor, scripts-per-once, scripts-per-boot, scripts-per-instance, scripts-user, ssh-authkey-fingerprints, phone-home, final-message, power-state-change]
`,
  // Without a seed the guest still asks for an address; cloud-init's own file comes first where there is one.
  '/etc/systemd/network/90-berth.network': `[Match]
Name=eth* en*
[Network]
DHCP=ipv4
`,
  // Loop devices are made when they are asked for; eight of them in advance cost eight looks of udev.
  '/etc/modprobe.d/berth.conf': 'options loop max_loop=0\n',
  // There are no 63 screens here, and udev would look at each.
  '/etc/systemd/system/systemd-udev-trigger.service.d/berth.conf': `[Service]
ExecStart=
ExecStart=-udevadm trigger --type=subsystems --action=add
ExecStart=-udevadm trigger --type=devices --action=add --subsystem-nomatch=tty --subsystem-nomatch=vc --subsystem-nomatch=vtconsole --subsystem-nomatch=mem --subsystem-nomatch=graphics
ExecStart=-udevadm trigger --type=devices --action=add --subsystem-match=tty --sysname-match=ttyS* --sysname-match=hvc* --sysname-match=tty0 --sysname-match=console
`,
  // The clock is set by the host's; keeping it right can wait until the boot is over.
  '/etc/systemd/system/berth-time.service': `[Unit]
Description=Start time synchronization after the boot
After=cloud-final.service
[Service]
Type=oneshot
ExecStart=systemctl --no-block start systemd-timesyncd.service
[Install]
WantedBy=cloud-init.target
`,
  '/etc/systemd/system/systemd-networkd-wait-online.service.d/berth.conf': `# One address is enough, and a guest without any must come up too.
[Service]
ExecStart=
ExecStart=/lib/systemd/systemd-networkd-wait-online --any --ipv4 --timeout=15
`,
};
export const executables: readonly string[] = [
  '/etc/initramfs-tools/scripts/init-top/udev',
  '/etc/initramfs-tools/scripts/init-bottom/udev',
  '/etc/initramfs/post-update.d/berth-loader',
];

export const enabledUnits = [
  'systemd-networkd.service',
  'systemd-networkd-wait-online.service',
  'systemd-resolved.service',
  'berth-time.service',
] as const;
export const disabledUnits = ['systemd-timesyncd.service'] as const; // started by berth-time.service
/** What costs a fresh guest seconds and gives it nothing; an owner can unmask them. */
export const maskedUnits = [
  'apt-daily.timer',
  'apt-daily-upgrade.timer',
  'dpkg-db-backup.timer',
  'e2scrub_all.timer',
  'e2scrub_reap.service',
  'getty@tty1.service', // there is no screen
  'systemd-pstore.service',
] as const;

/** Must not be the same in two guests, or belongs to the host that built the image. */
export const removedFiles = [
  '/etc/ssh/ssh_host_*',
  '/var/lib/systemd/random-seed',
  '/var/lib/dbus/machine-id',
  '/var/lib/apt/lists/*',
  '/var/cache/apt/*',
  '/var/cache/debconf/*-old',
  '/var/log/*.log',
  '/var/log/apt',
  '/etc/resolv.conf',
] as const;
/** path -> target */
export const links: Readonly<Record<string, string>> = {
  '/etc/resolv.conf': '../run/systemd/resolve/stub-resolv.conf',
};
