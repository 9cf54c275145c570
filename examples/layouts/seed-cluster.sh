#!/bin/bash
# A separate seed cluster: three small machines run etcd and the control plane and nothing else; hosts are other machines. docs/layouts/seed-cluster.md
set -e
. "$(dirname "$0")/machines.sh"

members=seed1=http://10.78.0.1:2380,seed2=http://10.78.0.2:2380,seed3=http://10.78.0.3:2380
for i in 1 2 3; do
  machine "seed$i" "10.78.0.$i"
  logged "etcd-seed$i" on "seed$i" etcd --name "seed$i" --data-dir "$work/etcd-$i" \
    --listen-peer-urls "http://10.78.0.$i:2380" --initial-advertise-peer-urls "http://10.78.0.$i:2380" \
    --listen-client-urls "http://10.78.0.$i:2379" --advertise-client-urls "http://10.78.0.$i:2379" \
    --initial-cluster "$members" --initial-cluster-token layout
done
head -c 32 /dev/urandom | base64 >"$work/master.key"
chmod 600 "$work/master.key"
export BERTH_SERVER_MASTER_KEY_FILE=$work/master.key
export BERTH_SERVER_STORE=etcd://10.78.0.1:2379,10.78.0.2:2379,10.78.0.3:2379/berth
for i in 1 2 3; do
  server "seed$i" "10.78.0.$i"
done

servers=https://10.78.0.1:7070,https://10.78.0.2:7070,https://10.78.0.3:7070
operator seed1 "$servers"
machine build-1 10.78.0.11
machine build-2 10.78.0.12
agent build-1 "https://10.78.0.1:7070"
agent build-2 "https://10.78.0.1:7070"
finish "$@"
