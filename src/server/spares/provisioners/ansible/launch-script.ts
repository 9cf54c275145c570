// Runs ansible-playbook so that its end is known later, even when the server that started it is gone: the shell writes
// down who it is before, and the exit code after. Its first argument is the run's folder, the others are the program and its arguments.

/**
 * SIGTERM to the group ends the program, not the shell, which then writes the exit code: traps are reset in what a shell starts. The
 * output is read to its end and its last 64 KiB are kept, however much the program prints. What held secrets is removed at the end, whether or
 * not a server is there. Where it cannot write down who it is, as on a full disk, it starts nothing.
 */
export const launchScript = `set -u
umask 077
folder=$1
shift
trap : TERM INT HUP
read -r stat < /proc/$$/stat
set -f
fields=\${stat##*) }
start() { shift 19; ticks=$1; }
start $fields
printf '%s %s\\n' "$$" "$ticks" > "$folder/process.new" && mv "$folder/process.new" "$folder/process" || exit 1
(
  trap : TERM INT HUP
  "$@" < /dev/null
  code=$?
  rm -rf "$folder/variables.yml" "$folder/home" "$folder/tmp"
  printf '%s\\n' "$code" > "$folder/exit.new"
  mv "$folder/exit.new" "$folder/exit"
) 2>&1 | (
  trap '' TERM INT HUP
  exec tail -c 65536 > "$folder/output"
)
`;
