{{- define "berth.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "berth.selector" -}}
app.kubernetes.io/name: berth
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end -}}

{{- define "berth.rabbitmqSelector" -}}
app.kubernetes.io/name: berth
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: rabbitmq
{{- end -}}

{{- define "berth.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "berth.host" -}}
{{ include "berth.name" . }}.{{ .Release.Namespace }}.svc
{{- end -}}

{{- /* What the schema of the values cannot say. */ -}}
{{- define "berth.check" -}}
{{- if eq .Values.store.kind "sqlite" -}}
{{- if gt (int .Values.replicas) 1 -}}
{{- fail "replicas is more than 1, which SQLite does not allow: set store.kind to postgres or etcd" -}}
{{- end -}}
{{- else -}}
{{- $_ := required "store.urlSecret.name is missing: a Secret with the URL of the store" .Values.store.urlSecret.name -}}
{{- $_ := required "masterKey.secret.name is missing: a Secret with the output of openssl rand -base64 32" .Values.masterKey.secret.name -}}
{{- end -}}
{{- if .Values.rabbitmq.enabled -}}
{{- $_ := required "rabbitmq.passwordSecret.name is missing: a Secret with the password of the user berth" .Values.rabbitmq.passwordSecret.name -}}
{{- end -}}
{{- if .Values.serviceMonitor.enabled -}}
{{- $_ := required "serviceMonitor.tokenSecret.name is missing: a Secret with a token of the role metrics" .Values.serviceMonitor.tokenSecret.name -}}
{{- end -}}
{{- end -}}
