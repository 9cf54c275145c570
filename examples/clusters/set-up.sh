#!/bin/sh
# Two clusters on one control plane: for each a project with a quota, a pool of hosts, and a token that reaches nothing else (docs/clusters.md). Run it with the
# admin token; BERTH is the command, OUT the folder for the tokens.
set -e
BERTH=${BERTH:-berth}
OUT=${OUT:-.}
umask 077

cluster() {
  name=$1 cpus=$2
  $BERTH pool create "$name"
  $BERTH project create "$name" --quota "VCPU=$cpus" --pool "$name"
  $BERTH token create --name "$name-provisioner" --role user --for-project "$name" --expires 30d -o json >"$OUT/$name.json"
  sed -n 's/.*"token": *"\([^"]*\)".*/\1/p' "$OUT/$name.json" >"$OUT/$name.token"
  rm "$OUT/$name.json"
}

cluster blue 64
cluster green 16
$BERTH host pool build-1 blue
$BERTH host pool build-2 green
