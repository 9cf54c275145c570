#!/bin/sh
# Claims resources for a consumer, as programs do that place their own work by OpenStack Placement: ask for candidates, then try them in
# turn until one holds.
#
#   PLACEMENT_URL=http://127.0.0.1:7070/placement PLACEMENT_TOKEN=$BERTH_TOKEN sh claim.sh CONSUMER VCPU=2 MEMORY_MB=1024
#
# Needs python3-openstackclient and python3-osc-placement of Debian.
set -eu

consumer=$1
shift

placement() {
  openstack --os-auth-type admin_token --os-endpoint "$PLACEMENT_URL" --os-token "$PLACEMENT_TOKEN" \
    --os-placement-api-version 1.28 "$@"
}

wanted=
for amount in "$@"; do
  wanted="$wanted --resource $amount"
done

# Several rows with one number are one candidate: one row for each provider that it takes resources of.
candidates=$(placement allocation candidate list $wanted -f value -c '#' -c allocation -c 'resource provider')
for number in $(echo "$candidates" | cut -d ' ' -f 1 | uniq); do
  parts=$(echo "$candidates" | awk -v number="$number" '$1 == number { print "--allocation rp=" $3 "," $2 }')
  if placement resource provider allocation set "$consumer" $parts \
    --project-id example --user-id example -f value -c resource_provider; then
    exit 0
  fi
done
echo 'NO ALLOCATIONS LEFT' >&2
exit 1
