# Makes a machine of its own of the namespaces that this runs in, and stays until it is killed. What is written there is kept in memory.
# Arguments: the name of the machine, the project's folder, its Node, a folder that all machines have.
set -e
name=$1 project=$2 node=$3 exchange=$4
hostname "$name"
ip link set lo up
mount -t tmpfs -o mode=0755 tmpfs /mnt
mkdir /mnt/berth /mnt/exchange /mnt/modules
mount --bind "$project" /mnt/berth
mount --bind "$exchange" /mnt/exchange
ln -s /mnt/berth /mnt/modules/berth
for folder in etc var usr/local root; do
  mkdir -p "/mnt/upper/$folder" "/mnt/work/$folder"
  mount -t overlay overlay -o "lowerdir=/$folder,upperdir=/mnt/upper/$folder,workdir=/mnt/work/$folder" "/$folder"
done
mount -t tmpfs tmpfs /run
chmod 0755 /run
rm -rf /etc/berth /var/lib/berth /root/.config/berth
printf '127.0.0.1 localhost\n10.77.0.1 db\n10.77.0.2 cp1\n10.77.0.3 cp2\n' >/etc/hosts
cp /mnt/berth/test/three-machines/stand-ins/* /usr/local/sbin/
program() {
  printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$node" "$2" >"$1"
  chmod +x "$1"
}
program /usr/local/bin/berth /mnt/berth/src/main.ts
program /usr/local/sbin/systemctl /mnt/berth/test/three-machines/stand-in-systemctl.ts
# Guests of the recipe are pretended: they need no hardware and no download.
mkdir /etc/berth
echo BERTH_AGENT_DRIVERS=fake >/etc/berth/agent.env
echo ready
while :; do
  sleep 3600 &
  wait $!
done
