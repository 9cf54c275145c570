// Renders a chart as Helm does, as far as this chart needs it: Go's own templates, with Helm's functions that the chart uses. A function that
// is missing here ends the rendering. Standard input: {"templates": {name: text}, "values": {...}, "release": {...}, "chart": {...}}.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"text/template"
)

type input struct {
	Templates map[string]string
	Values    map[string]interface{}
	Release   map[string]interface{}
	Chart     map[string]interface{}
}

func main() {
	var in input
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		fail(err)
	}
	root := template.New("chart")
	root.Option("missingkey=error")
	root.Funcs(functions(root))
	names := []string{}
	for name, text := range in.Templates {
		if _, err := root.New(name).Parse(text); err != nil {
			fail(err)
		}
		names = append(names, name)
	}
	sort.Strings(names)
	data := map[string]interface{}{"Values": in.Values, "Release": in.Release, "Chart": in.Chart}
	out := map[string]string{}
	for _, name := range names {
		if strings.HasPrefix(name, "_") {
			continue
		}
		var text bytes.Buffer
		if err := root.ExecuteTemplate(&text, name, data); err != nil {
			fail(err)
		}
		out[name] = text.String()
	}
	json.NewEncoder(os.Stdout).Encode(out)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func functions(root *template.Template) template.FuncMap {
	return template.FuncMap{
		"include": func(name string, data interface{}) (string, error) {
			var text bytes.Buffer
			err := root.ExecuteTemplate(&text, name, data)
			return text.String(), err
		},
		"required": func(message string, value interface{}) (interface{}, error) {
			if value == nil || value == "" {
				return nil, errors.New(message)
			}
			return value, nil
		},
		"fail": func(message string) (string, error) { return "", errors.New(message) },
		"default": func(fallback interface{}, value interface{}) interface{} {
			if truth, _ := template.IsTrue(value); truth {
				return value
			}
			return fallback
		},
		"quote":      func(value interface{}) string { return strconv.Quote(fmt.Sprint(value)) },
		"indent":     indent,
		"nindent":    func(spaces int, text string) string { return "\n" + indent(spaces, text) },
		"trunc":      func(length int, text string) string { return text[:min(length, len(text))] },
		"trimSuffix": func(suffix, text string) string { return strings.TrimSuffix(text, suffix) },
		"int":        func(value interface{}) int { return int(reflect.ValueOf(value).Float()) },
		"list":       func(values ...interface{}) []interface{} { return values },
		"concat": func(lists ...[]interface{}) []interface{} {
			all := []interface{}{}
			for _, each := range lists {
				all = append(all, each...)
			}
			return all
		},
		"join": func(separator string, values []interface{}) string {
			texts := []string{}
			for _, each := range values {
				texts = append(texts, fmt.Sprint(each))
			}
			return strings.Join(texts, separator)
		},
		"sha256sum": func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) },
		"toYaml":    func(value interface{}) string { return strings.Join(blockOf(value), "\n") },
	}
}

func min(a, b int) int {
	if a < b {
		return a
	}
	return b
}

func indent(spaces int, text string) string {
	pad := strings.Repeat(" ", spaces)
	return pad + strings.ReplaceAll(text, "\n", "\n"+pad)
}

// YAML in block style, as the lines of Helm's toYaml have it: an indentation that is wrong shows.
func blockOf(value interface{}) []string {
	lines := []string{}
	switch of := value.(type) {
	case map[string]interface{}:
		if len(of) == 0 {
			return []string{"{}"}
		}
		keys := []string{}
		for key := range of {
			keys = append(keys, key)
		}
		sort.Strings(keys)
		for _, key := range keys {
			below := blockOf(of[key])
			if isBlock(of[key]) {
				lines = append(lines, key+":")
				for _, line := range below {
					lines = append(lines, "  "+line)
				}
			} else {
				lines = append(lines, key+": "+below[0])
			}
		}
		return lines
	case []interface{}:
		if len(of) == 0 {
			return []string{"[]"}
		}
		for _, each := range of {
			for i, line := range blockOf(each) {
				if i == 0 {
					lines = append(lines, "- "+line)
				} else {
					lines = append(lines, "  "+line)
				}
			}
		}
		return lines
	}
	text, _ := json.Marshal(value)
	return []string{string(text)}
}

func isBlock(value interface{}) bool {
	switch of := value.(type) {
	case map[string]interface{}:
		return len(of) > 0
	case []interface{}:
		return len(of) > 0
	}
	return false
}
