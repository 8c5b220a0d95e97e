package acceptance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fspda/bench/measure"
	"fspda/train"
)

// minTime is the remaining budget below which no part is started.
const minTime = 5 * time.Second

// Run runs the selected parts, or all unfinished ones, and saves the results in the folder after
// each call of the program. A part that fails or times out is recorded, and the next one starts.
// The error comes from the options, the folder, or the context.
func Run(ctx context.Context, o Options) (*Results, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	r, err := open(&o)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	parts := o.chosen(r)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	begun := false
	for i, p := range parts {
		if !p.Alone && !begun {
			begin(ctx, parts)
			begun = true
		}
		left := o.Budget - time.Since(began)
		if left < minTime {
			o.say("%d parts are left: their time is over; the same command goes on with them", len(parts)-i)
			break
		}
		o.say("[%d/%d, %s] %s", i+1, len(parts), time.Since(began).Round(time.Second), p.Name)
		out, err := r.play(ctx, p, min(p.Limit, left))
		if err != nil {
			return r, err
		}
		result := fmt.Sprintf("    %s in %.0f s", out.Status, out.Seconds)
		if text := cmp.Or(out.Reason, out.Summary); text != "" {
			result += ": " + text
		}
		o.say("%s", result)
	}
	return r, nil
}

// begin starts the work of parts in the background.
func begin(ctx context.Context, parts []Part) {
	for _, p := range parts {
		if p.Begin != nil {
			p.Begin(ctx)
		}
	}
}

func (o *Options) check() error {
	if o.Budget <= 0 {
		return &train.ConfigError{Key: "budget", Got: o.Budget.String(), Want: "expected a time above 0, such as 10m"}
	}
	if strings.Contains(o.Device, ",") || o.Device == "auto" {
		return &train.ConfigError{Key: "device", Got: o.Device, Want: "expected one device: cuda, cuda:N or cpu"}
	}
	if o.Device == "cuda" {
		o.Device = "cuda:0" // and not all of them
	}
	if slices.ContainsFunc(o.names(), func(name string) bool { return measure.Selects(o.Only, name) }) {
		return nil
	}
	return &train.ConfigError{Key: "only", Got: o.Only, Want: "expected a part of one of these names: " +
		strings.Join(o.names(), ", ")}
}

func (o *Options) say(format string, args ...any) { fmt.Fprintf(o.Progress, format+"\n", args...) }

// play runs one part. Failures of the part are recorded in its outcome; an error means that results
// cannot be saved, or that the context has ended.
func (r *Results) play(ctx context.Context, p Part, limit time.Duration) (*Outcome, error) {
	out := r.newOutcome(p.Name)
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	failed := r.run(limited, p, out)
	out.Seconds = time.Since(began).Seconds()
	switch {
	case ctx.Err() != nil:
		out.Status, out.Reason = TimeOut, "it was stopped"
	case limited.Err() != nil:
		out.Status, out.Reason = TimeOut, fmt.Sprintf("it had %s", limit.Round(time.Second))
		if errors.Is(failed, errStuck) {
			out.Reason += "; " + errStuck.Error()
		}
	case isLacking(failed):
		out.Status, out.Reason = Skipped, failed.Error()
	case failed != nil:
		out.Status, out.Reason = Failed, strings.Join(strings.Fields(failed.Error()), " ")
	default:
		out.Status, out.Reason = Done, ""
	}
	return out, errors.Join(ctx.Err(), r.save())
}

func isLacking(err error) bool { _, is := errors.AsType[errLacking](err); return is }

// run runs a part with a temporary folder and a log.
func (r *Results) run(ctx context.Context, p Part, out *Outcome) error {
	dir, err := os.MkdirTemp(r.options.Out, ".part-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // leftovers are harmless
	log, err := os.Create(filepath.Join(r.options.Out, "logs", strings.ReplaceAll(p.Name, "/", "-")+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	k := &job{Options: r.options, out: out, dir: dir, log: log, save: r.save}
	if step := r.firstOf("ours", alonePart, stepPart); step != nil {
		k.rate = step.Values["ours"]
	}
	if f := r.outcome(megakernelPart); f != nil && f.Values["without"] != 0 && p.Name != megakernelPart {
		k.env = append(k.env, withoutMegakernel)
		out.note("with " + withoutMegakernel + ", as " + megakernelPart + " did not pass")
	}
	return p.Run(ctx, k)
}
