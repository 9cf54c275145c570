// The callback plugin by which ansible-playbook reports its progress: a JSON line for each play, task, fault and for the end. It never
// writes results or arguments of tasks, which may hold secrets; of a task with no_log not even what its fault says.

/** Python's name of the module, and the plugin's. */
export const progressPlugin = 'berth_progress';

/** Names the file of the lines. */
export const progressVariable = 'BERTH_SPARE_PROGRESS';

export const progressPluginSource = `import json
import os

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: ${progressPlugin}
type: stdout
short_description: Writes JSON lines about the progress of a playbook
description: A line for each play, task and fault, and one for the end.
"""

LINES_MAX = 2000


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "${progressPlugin}"

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._file = open(os.environ["${progressVariable}"], "a", encoding="utf-8")
        self._lines = 0

    def _say(self, last=False, **fields):
        self._lines += 1
        if self._lines > LINES_MAX and not last:
            return
        self._file.write(json.dumps(fields, default=str) + "\\n")
        self._file.flush()

    def _fault(self, event, result):
        hidden = result._task.no_log or result._result.get("_ansible_no_log")
        message = "" if hidden else str(result._result.get("msg", ""))[:2000]
        name = "" if hidden else result._task.get_name()[:200]
        self._say(event=event, host=result._host.get_name()[:200], task=name, message=message)

    def v2_playbook_on_play_start(self, play):
        self._say(event="play", name=play.get_name()[:200])

    def v2_playbook_on_task_start(self, task, is_conditional):
        self._say(event="task", name="" if task.no_log else task.get_name()[:200])

    def v2_playbook_on_handler_task_start(self, task):
        self.v2_playbook_on_task_start(task, False)

    def v2_runner_on_failed(self, result, ignore_errors=False):
        if not ignore_errors:
            self._fault("failed", result)

    def v2_runner_on_unreachable(self, result):
        if not result._task.ignore_unreachable:
            self._fault("unreachable", result)

    def v2_playbook_on_stats(self, stats):
        hosts = {host: stats.summarize(host) for host in list(stats.processed)[:100]}
        given = getattr(stats, "custom", {}).get("_run", {})
        found = {key: str(given[key])[:256] for key in ("berth_name", "berth_address") if key in given}
        self._say(last=True, event="end", hosts=hosts, found=found)
`;
