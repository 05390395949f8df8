package auto

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/forebayhq/forebay/worker/adapt"
)

// Result is what came out of one phase.
type Result struct {
	Phase Phase
	Auto  float64 // calls a second
	Best  float64 // of the best fixed setting, for this phase
	Fixed int     // which that is
	Wrong float64 // calls a second of the fixed setting that is best over all phases
	Worst float64 // the least that came out of any ten seconds, of what servers could do; the first ones left out
	Took  int     // seconds until 90 % of the best came out
	Path  []Second
}

// Settings are the fixed ones that are compared.
func Settings() []int { return []int{8, 12, 20, 25, 30, 40, 100} }

// fixedFor is how long a fixed setting needs to show what it does: it has nothing to find.
const fixedFor = 8 * time.Second

const seed = 20261130

// Compare runs the phases with a limiter, and with all fixed settings.
func Compare(phases []Phase, l Limiter) []Result {
	out := make([]Result, len(phases))
	paths := Run(phases, l, seed)
	for i := range phases {
		out[i] = Result{Phase: phases[i], Auto: rate(paths[i]), Path: paths[i]}
	}
	short := slices.Clone(phases)
	for i := range short {
		short[i].For = fixedFor
	}
	var wrong []float64
	most := 0.0
	for _, n := range Settings() {
		var rates []float64
		product := 1.0
		for i, path := range Run(short, Fixed(n), seed) {
			rates = append(rates, rate(path))
			product *= rates[i]
			if rates[i] > out[i].Best {
				out[i].Best, out[i].Fixed = rates[i], n
			}
		}
		if product > most {
			most, wrong = product, rates
		}
	}
	for i := range out {
		r := &out[i]
		r.Wrong, r.Worst, r.Took = wrong[i], worst(r), took(r)
	}
	return out
}

// New is the limiter that is measured: the one of workers, with its bounds' defaults.
func New() Limiter { return adapt.New(adapt.Config{Min: 1, Max: 100}) }

func rate(path []Second) float64 {
	n := 0
	for _, s := range path {
		n += s.Done
	}
	return float64(n) / float64(len(path))
}

const (
	settling = 30 // seconds of a phase in which it may look for its way
	stretch  = 10
)

// worst is the least share of what the servers can do that came out of ten seconds.
func worst(r *Result) float64 {
	least := math.Inf(1)
	for i := settling; i+stretch <= len(r.Path); i += stretch {
		servers := 0.0
		for _, s := range r.Path[i : i+stretch] {
			servers += s.Servers / stretch
		}
		could := servers / r.Phase.Service.Seconds()
		least = min(least, rate(r.Path[i:i+stretch])/could)
	}
	return least
}

func took(r *Result) int {
	for i := range r.Path {
		could := r.Path[i].Servers / r.Phase.Service.Seconds()
		if float64(r.Path[i].Done) >= 0.9*could {
			return i + 1
		}
	}
	return len(r.Path)
}

// Print writes the table and the plot.
func Print(w io.Writer, all []Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "phase\tauto\tbest fixed\tauto / best\tone fixed for all\tworst 10 s\t90 % after")
	for _, r := range all {
		fmt.Fprintf(t, "%s\t%.0f/s\t%.0f/s (%d)\t%.2f\t%.0f/s\t%.2f\t%d s\n", r.Phase.Name, r.Auto, r.Best, r.Fixed, r.Auto/r.Best, r.Wrong, r.Worst, r.Took)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n"+plot(all))
	return err
}

const (
	column = 10 // seconds
	rows   = 12
	each   = 4 // of the limit, a row
)

// plot draws the limit over the servers: · for what the back end has, # for the limit, @ where
// they are the same.
func plot(all []Result) string {
	var limits, servers []float64
	var marks strings.Builder
	for _, r := range all {
		for i := 0; i < len(r.Path); i += column {
			l, s := 0.0, 0.0
			for _, one := range r.Path[i : i+column] {
				l, s = l+one.Limit/column, s+one.Servers/column
			}
			limits, servers = append(limits, l), append(servers, s)
			marks.WriteByte("|-"[min(i, 1)])
		}
	}
	var b strings.Builder
	for row := rows; row > 0; row-- {
		fmt.Fprintf(&b, "%3d ", row*each)
		for i := range limits {
			l, s := int(math.Round(limits[i]/each)) == row, int(math.Round(servers[i]/each)) == row
			b.WriteByte(" #.@"[map[bool]int{true: 1}[l]+map[bool]int{true: 2}[s]])
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "    %s\n    a column: %s; .: servers, #: limit, @: both; |: a phase begins\n", marks.String(), column*time.Second)
	return b.String()
}
