package web

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Limits of a stream of events.
const (
	maxStreamRuns     = 12               // runs in one stream
	writeTimeout      = 5 * time.Second  // a reader that is slower than that is let go
	keepAliveInterval = 15 * time.Second // a comment, so that both ends know
	liveTick          = frameInterval
	fileTick          = 500 * time.Millisecond
)

// stream is one reader of events. It asks for what is new and sends that: nothing queues up for a
// reader who is slow, who just gets fewer frames and longer messages.
type stream struct {
	s    *Server
	ctx  context.Context
	w    http.ResponseWriter
	ctl  *http.ResponseController
	runs []string
	at   map[string]cursor
	live bool // the live run is among them

	frame, agents int // numbers of the last ones sent
	list          string
	sent          time.Time
}

// follow answers with server-sent events about the runs asked for, until the reader goes.
func (s *Server) follow(w http.ResponseWriter, r *http.Request) {
	runs := r.URL.Query()["run"]
	if len(runs) > maxStreamRuns {
		http.Error(w, "too many runs", http.StatusBadRequest)
		return
	}
	for _, run := range runs {
		if !s.runs.has(run, time.Now()) {
			http.Error(w, "no such run", http.StatusNotFound)
			return
		}
	}
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many readers", http.StatusServiceUnavailable)
		return
	}
	st := &stream{s: s, ctx: r.Context(), w: w, ctl: http.NewResponseController(w), runs: runs, at: map[string]cursor{},
		live: s.snapshotter != nil && slices.Contains(runs, s.opt.Live.Run)}
	// nothing more is to be read; where there are no deadlines there is none to lift
	_ = st.ctl.SetReadDeadline(time.Time{})
	w.Header().Set("Content-Type", "text/event-stream")
	tick := fileTick
	if st.live {
		tick = liveTick
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for now := time.Now(); st.sendUpdates(now); {
		timer.Reset(untilTick(time.Now(), tick))
		select {
		case now = <-timer.C:
		case <-r.Context().Done():
			return
		}
	}
}

// untilTick is the time to the next whole multiple of a tick: all readers are told at the same
// moments, so that many wake a training program no more often than one does.
func untilTick(now time.Time, tick time.Duration) time.Duration {
	return tick - time.Duration(now.UnixNano())%tick
}

// tell sends what is new, and reports whether the reader is still there.
func (st *stream) sendUpdates(now time.Time) bool {
	if st.sent.IsZero() && !st.send("", nil, now) {
		return false
	}
	for _, run := range st.runs {
		for more := true; more; { // a long history comes in parts
			var message []byte
			if !st.do(func() { message, st.at[run] = st.s.tailers.get(run, now).rows(run, st.at[run], now) }) {
				return false
			}
			if more = message != nil; more && !st.send("rows", message, now) {
				return false
			}
		}
	}
	return (!st.live || st.sendLive(now)) && st.sendRunList(now) && (now.Sub(st.sent) <= keepAliveInterval ||
		st.send("", nil, now))
}

// sendLive sends the run of this process.
func (st *stream) sendLive(now time.Time) bool {
	var frame, agents []byte
	var n, an int
	if !st.do(func() { frame, n, agents, an = st.s.snapshotter.latest(now) }) {
		return false
	}
	if an != st.agents && !st.send("agents", agents, now) || n != st.frame && !st.send("frame", frame, now) {
		return false
	}
	st.frame, st.agents = n, an
	return true
}

// sendRunList says that the list of runs is another.
func (st *stream) sendRunList(now time.Time) bool {
	var list string
	if !st.do(func() { list = st.s.fingerprint(now) }) {
		return false
	}
	if list == st.list {
		return true
	}
	st.list = list
	return st.send("runs", []byte("{}"), now)
}

// make calls work when the share of the processors that streams have allows it, or returns false if
// the reader goes before.
func (st *stream) do(work func()) bool { return st.s.events.do(st.ctx, 0, work) }

// send writes an event, or a comment where it has no name.
func (st *stream) send(event string, data []byte, now time.Time) bool {
	if err := st.ctl.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return false // without deadlines a reader could hold the stream for ever
	}
	st.s.events.charge(eventCost+sendCost(len(data)), time.Now())
	text := ":\n\n"
	if event != "" {
		text = "event: " + event + "\ndata: " + string(data) + "\n\n" // JSON has no line ends
	}
	if _, err := st.w.Write([]byte(text)); err != nil {
		return false
	}
	st.sent = now
	return st.ctl.Flush() == nil
}

// fingerprint changes when the list of runs does.
func (s *Server) fingerprint(now time.Time) string {
	var b strings.Builder
	for _, i := range s.runs.list(now) {
		b.WriteString(i.Run + "\x00" + i.Status + "\x00")
	}
	return b.String()
}
