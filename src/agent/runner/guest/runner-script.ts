// The runner: the program inside the guest that runs the program of a run and speaks the guest's side of protocol.ts. Pure text, for
// dash, busybox and illumos: only what busybox has may be called; a dollar sign with braces or a backtick would be TypeScript's, so
// there are none. It must keep every byte that the agent has not acknowledged, and never more than its spool holds.
//
//   program ─► FIFO ─► pump: a file per read ─┐ a token each, back at the acknowledgement
//   port ─► listener: a command per line ─────┼─► FIFO of events ─► the main loop: alone writes to the port
//   waiter: the program's end ────────────────┘

export const runnerScript = String.raw`#!/bin/sh
# Runs the program of this guest's run once, and carries its output to the agent. As: runner.sh FOLDER [given [checked]]
# With "given" the port is open already, as descriptor 4, and the machine is left alone. With "checked" files carry a checksum.
here=$1
given=$2
self=$here/runner.sh
export PATH="$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ifs=$IFS
cd "$here" || exit 1
. ./settings

# What "runner.sh FOLDER program" is: the program itself, in a group of its own.
if [ "$given" = program ]; then
  echo 0 2>/dev/null >/proc/self/oom_score_adj
  [ -n "$HOME" ] || export HOME=/root
  cd work || exit 126
  berth_work=$here/work
  berth_program=$program
  # It may set anything, also parameters: variables with names that a shell cannot export.
  shift $#
  . ../env
  [ $# -eq 0 ] || set -- env "$@"
  export SOLSTICE_WORKDIR="$berth_work" BERTH_WORKDIR="$berth_work"
  [ -f ../script ] && exec "$@" sh ../script
  if [ ! -f "./$berth_program" ]; then
    echo "berth: the work directory has no file $berth_program" >&2
    exit 127
  fi
  [ -x "./$berth_program" ] && exec "$@" "./$berth_program"
  exec "$@" sh "./$berth_program"
fi

bootid=
[ -r /proc/sys/kernel/random/boot_id ] && read -r bootid </proc/sys/kernel/random/boot_id
[ -n "$bootid" ] || bootid=t$(date +%s).$$
newgroup=setsid
command -v setsid >/dev/null 2>&1 || newgroup=setpgrp

nap() { sleep "$1" 2>/dev/null || sleep 1; }

# The virtio-serial port by its name, which only udev makes a link of; else the second serial port.
findport() {
  modprobe virtio_console 2>/dev/null || insmod /modules/virtio_console.ko 2>/dev/null
  tries=0
  while [ $tries -lt 100 ]; do
    port=/dev/virtio-ports/berth.run.0
    [ -e $port ] && return
    for name in /sys/class/virtio-ports/*/name; do
      [ -r "$name" ] && read -r word <"$name" && [ "$word" = berth.run.0 ] || continue
      port=/dev/$(basename "$(dirname "$name")")
      [ -e "$port" ] && return
    done
    [ -d /sys/class ] || break
    nap 0.1
    tries=$((tries + 1))
  done
  for port in /dev/ttyS1 /dev/term/b; do
    [ -c $port ] || continue
    serial=1
    command -v cksum >/dev/null 2>&1 && checked=checked
    return
  done
  echo "berth: there is no port for the runner" >/dev/console
  exit 1
}

spool=$here/spool
mkdir -p "$spool" || exit 1
checked=$3
serial=
if [ "$given" != given ]; then
  echo -500 2>/dev/null >/proc/self/oom_score_adj
  # Its own memory, so that a program that fills the disk does not end it. No file may have the name of the source: busybox would mount that.
  mount -t tmpfs -o size=8m,mode=700 tmpfs "$spool" 2>/dev/null || mount -F tmpfs -o size=8m swap "$spool" 2>/dev/null
  findport
  exec 4<>"$port" || exit 1
  # After the open: some systems forget the settings of a port that is closed.
  [ -z "$serial" ] || stty raw -echo clocal <&4 2>/dev/null || stty raw -echo <&4
fi
mkfifo "$spool/events" "$spool/tokens" "$spool/out" "$spool/err" || exit 1
exec 3<>"$spool/events" 5<>"$spool/tokens"
# So many files of at most 64 KiB are kept at a time.
tokens=64
while [ $tokens -gt 0 ]; do
  printf '\n' >&5
  tokens=$((tokens - 1))
done

# Standard input as files, until its end. A token is one byte, so that two readers never share one.
pump() {
  offset=0
  while read -r token <&5; do
    file=$spool/$1.$offset
    dd bs=65536 count=1 of="$file" 2>/dev/null
    set -- "$1" $(wc -c <"$file")
    [ "$2" -gt 0 ] || break
    printf 's %s %s %s\n' "$1" "$offset" "$2" >&3
    offset=$((offset + $2))
  done
  printf '\n' >&5
  printf 'e %s\n' "$1" >&3
}

# A read that ends at once means that the host is not connected.
listen() {
  while :; do
    if read -r line <&4; then
      case $line in "berth1 "*" .") printf 'c %s\n' "$line" >&3 ;; esac
    else
      nap 0.1
    fi
  done
}

wait_for_program() {
  $newgroup sh "$self" "$here" program </dev/null >"$spool/out" 2>"$spool/err" 3>&- 4>&- 5>&- &
  pid=$!
  printf 'p %s\n' $pid >&3
  wait $pid
  printf 'x %s\n' $? >&3
}

tick() {
  nap 2
  while :; do
    printf 't\n' >&3
    nap 0.3
  done
}

# The files that the patterns name, as one archive.
archive() {
  cd "$here/work" || exit 1
  IFS='
'
  set --
  for path in $(cat ../artifacts); do
    [ -e "$path" ] || [ -L "$path" ] || continue
    case $path in -*) path=./$path ;; esac
    set -- "$@" "$path"
  done
  IFS=$ifs
  status=0
  [ $# -eq 0 ] || tar cf - "$@" 2>/dev/null || status=$?
  echo $status >"$spool/status"
}

phase=new
group=
code=
status=
termed=
ticks=0
inflight=0
q_stdout= q_stderr= q_artifacts=
open_stdout= open_stderr=
idle_stdout=0 idle_stderr=0

# To the port only cat writes: a shell's own write may break off when a child ends meanwhile.
say() {
  printf '\nberth1 %s .\n' "$*" >"$spool/head"
  cat "$spool/head" >&4
}

# One file, as a frame.
send() {
  check=-
  if [ -n "$checked" ]; then
    set -- "$1" "$2" "$3" $(cksum <"$spool/$1.$2")
    check=$4
  fi
  printf 'berth1 data %s %s %s %s .\n' "$1" "$2" "$3" "$check" >"$spool/head"
  cat "$spool/head" "$spool/$1.$2" >&4
}

resend() {
  stream=$1
  eval "queue=\$q_$stream"
  for entry in $queue; do
    IFS=:
    set -- $entry
    IFS=$ifs
    send "$stream" "$1" "$2"
  done
}

# Forgets what is below an offset.
forget() {
  stream=$1
  upto=$2
  kept= gone=
  eval "queue=\$q_$stream"
  for entry in $queue; do
    IFS=:
    set -- $entry
    IFS=$ifs
    if [ $(($1 + $2)) -le "$upto" ]; then
      gone="$gone $stream.$1"
      inflight=$((inflight - 1))
    else
      kept="$kept $entry"
    fi
  done
  eval "q_$stream=\$kept"
  [ -n "$gone" ] || return 0
  (cd "$spool" && rm -f $gone)
  for file in $gone; do printf '\n' >&5; done
}

hello() {
  forget stdout "$2"
  forget stderr "$3"
  forget artifacts "$4"
  say welcome "$1" "$bootid" $phase
  resend stdout
  resend stderr
  [ -z "$code" ] || say exit "$code"
  resend artifacts
  [ -z "$status" ] || say done "$status"
}

# A part of a file of the program, for a guest that booted without one.
put() {
  [ $phase = new ] || return 0
  case $1 in settings | env | artifacts | script) ;; *) return 0 ;; esac
  [ "$2" = more ] || : >"$here/$1"
  printf '%b' "$3" >>"$here/$1"
}

go() {
  [ $phase = new ] || return 0
  phase=running
  open_stdout=1 open_stderr=1
  pump stdout <"$spool/out" 4>&- &
  pump_stdout=$!
  pump stderr <"$spool/err" 4>&- &
  pump_stderr=$!
  wait_for_program &
}

# A group that has not been told yet is told when it is known.
signal() {
  termed=$1
  [ -n "$group" ] && [ $phase = running ] || return 0
  kill -$1 -$group 2>/dev/null || kill -$1 $group 2>/dev/null
}

# Output that comes later is of processes that left the program's group: what stands in the pipes is taken, and no more.
late() {
  ticks=$((ticks + 1))
  kill -KILL -$group 2>/dev/null
  [ $inflight -lt 60 ] || return 0
  for stream in stdout stderr; do
    eval "open=\$open_$stream idle=\$idle_$stream pump=\$pump_$stream"
    [ -n "$open" ] || continue
    if [ "$idle" -ge 2 ] || [ $ticks -ge 30 ]; then
      kill -KILL "$pump" 2>/dev/null
      eval "open_$stream="
    fi
    eval "idle_$stream=$((idle + 1))"
  done
}

# After all of its output.
ended() {
  [ $phase = over ] && [ -z "$code$open_stdout$open_stderr" ] || return 0
  kill $ticker 2>/dev/null
  kill -KILL -$group 2>/dev/null
  code=$exited
  say exit "$code"
  archive </dev/null 3>&- 4>&- 5>&- | pump artifacts &
}

bye() {
  kill $listener $ticker 2>/dev/null
  [ "$1" = stay ] || [ "$given" = given ] && exit 0
  sync
  poweroff -f 2>/dev/null || poweroff || shutdown -y -i5 -g0
  exit 0
}

listen 2>/dev/null &
listener=$!
ticker=
say begin "$bootid"
while :; do
  read -r event a b c d e f <&3 || continue
  case $event in
    s)
      eval "q_$a=\"\$q_$a $b:$c\" idle_$a=0"
      inflight=$((inflight + 1))
      send "$a" "$b" "$c"
      ;;
    e)
      eval "open_$a="
      if [ "$a" = artifacts ]; then
        read -r status <"$spool/status"
        say done "$status"
      fi
      ended
      ;;
    c)
      case $b in
        hello) hello "$c" $d $e $f ;;
        put) put "$c" "$d" "$e" ;;
        go) go ;;
        ack) forget "$c" "$d" ;;
        term) signal TERM ;;
        kill) signal KILL ;;
        ping) say pong "$c" ;;
        bye) bye "$c" ;;
      esac
      ;;
    p)
      group=$a
      [ -z "$termed" ] || signal $termed
      ;;
    x)
      phase=over
      exited=$a
      tick &
      ticker=$!
      ended
      ;;
    t)
      late
      ended
      ;;
  esac
done
`;
