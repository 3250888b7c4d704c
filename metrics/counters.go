package metrics

import (
	"reflect"
	"strings"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rddp-go/rddp/ddpadapt"
)

//go:generate go run ./internal/helpgen

// emitter sends the metrics of one source.
type emitter struct {
	ch     chan<- prometheus.Metric
	source string
}

func (e *emitter) sendGauge(name, help string, v int) {
	desc := prometheus.NewDesc(name, help, []string{"source"}, nil)
	e.ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(v), e.source)
}

// labelValues are source and one more if that has a name, and what they say.
func (e *emitter) labelValues(label, value string) (labels, values []string) {
	labels, values = []string{"source"}, []string{e.source}
	if label != "" {
		labels, values = append(labels, label), append(values, value)
	}
	return labels, values
}

func (e *emitter) sendCounter(name, help string, v uint64, label, value string) {
	labels, values := e.labelValues(label, value)
	desc := prometheus.NewDesc("rddp_"+name+"_total", help, labels, nil)
	e.ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(v), values...)
}

// nestedStats are the structs and arrays within statistics, by type and field. Each has the prefix
// of its metrics, or the name of one metric with a label.
var nestedStats = map[string]struct{ prefix, name, label, help string }{
	"sctp.TransportStats.Endpoint": {prefix: "sctp_endpoint"},
	"rdma.Stats.Sessions":          {prefix: "ddp_session"},
	"rdma.Stats.TCP":               {prefix: "rdma_tcp"},
	"rdma.Stats.Faults": {name: "rdma_faults", label: "fault",
		help: "Terminate Messages sent, by what was wrong."},
	"ddpadapt.Stats.Faults": {name: "ddp_session_faults", label: "fault",
		help: "Sessions terminated because the peer broke the sequence, by how."},
}

// endPrefix are the fields of sctp.TransportStats that are one metric with a label.
const endPrefix = "End"

// sendCounters sends every counter of a struct.
func (e *emitter) sendCounters(prefix string, stats any) {
	v := reflect.ValueOf(stats)
	t := v.Type()
	for i := range t.NumField() {
		field, f := t.Field(i), v.Field(i)
		key := t.String() + "." + field.Name
		switch b, nested := nestedStats[key]; {
		case b.prefix != "":
			e.sendCounters(b.prefix, f.Interface())
		case nested && f.Kind() == reflect.Struct:
			for k := range f.NumField() {
				e.sendCounter(b.name, b.help, f.Field(k).Uint(), b.label, snakeCase(f.Type().Field(k).Name))
			}
		case nested:
			for k := 1; k < f.Len(); k++ { // 0 is no fault
				e.sendCounter(b.name, b.help, f.Index(k).Uint(), b.label, ddpadapt.Fault(k).String())
			}
		case f.Kind() != reflect.Uint64:
		case key == "sctp.TransportStats."+endPrefix+strings.TrimPrefix(field.Name, endPrefix):
			e.sendCounter(prefix+"_associations_ended", "Associations that have ended, by how.", f.Uint(), "reason",
				snakeCase(strings.TrimPrefix(field.Name, endPrefix)))
		default:
			help := helps[key]
			if help == "" { // a link from outside this module
				help = "The counter " + field.Name + "."
			}
			e.sendCounter(prefix+"_"+metricName(field.Name), help, f.Uint(), "", "")
		}
	}
}

// metricName makes the middle of a metric's name from a field's name. Prometheus says received and
// sent for in and out, and bytes for octets.
func metricName(field string) string {
	words := strings.Split(snakeCase(field), "_")
	last := len(words) - 1
	switch {
	case words[0] == "rx" && (words[1] == "packets" || words[1] == "batches"):
		words = append(words[1:], "received")
	case words[0] == "tx" && (words[1] == "packets" || words[1] == "batches"):
		words = append(words[1:], "sent")
	case words[0] == "rx":
		words[0] = "receive"
	case words[0] == "tx":
		words[0] = "transmit"
	case words[last] == "in":
		words[last] = "received"
	case words[last] == "out":
		words[last] = "sent"
	}
	for i, w := range words {
		if w == "octets" {
			words[i] = "bytes"
		}
	}
	return strings.Join(words, "_")
}

// snakeCase turns a name in mixed caps into words with underscores between: MTUProbesOut is
// mtu_probes_out.
func snakeCase(name string) string {
	var b strings.Builder
	r := []rune(name)
	for i, c := range r {
		upper := unicode.IsUpper(c)
		if i > 0 && upper && (unicode.IsLower(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}
