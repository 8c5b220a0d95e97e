package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Limits of a stream of events.
const (
	maxStreamRuns     = 48               // most runs of one stream
	writeTimeout      = 5 * time.Second  // a client that takes longer is disconnected
	keepAliveInterval = 15 * time.Second // interval of comments that keep the connection open
	liveTick          = frameInterval
	fileTick          = 500 * time.Millisecond
)

// stream is the event stream of one client. It polls for news and sends them. Nothing is queued: a
// slow client receives fewer frames and longer messages.
type stream struct {
	s    *Server
	ctx  context.Context
	w    http.ResponseWriter
	ctl  *http.ResponseController
	runs []string
	at   map[string]cursor
	live bool // runs includes the live run

	frame, agents int // numbers of the last ones sent
	list          string
	sent          time.Time
}

// follow serves server-sent events about the requested runs until the client disconnects.
func (s *Server) follow(w http.ResponseWriter, r *http.Request) {
	runs := r.URL.Query()["run"]
	if len(runs) > maxStreamRuns {
		http.Error(w, fmt.Sprintf("%d runs requested, want at most %d", len(runs), maxStreamRuns),
			http.StatusBadRequest)
		return
	}
	for _, run := range runs {
		if !s.runs.has(run, time.Now()) {
			http.Error(w, "unknown run", http.StatusNotFound)
			return
		}
	}
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many clients follow runs: try again later", http.StatusServiceUnavailable)
		return
	}
	st := &stream{s: s, ctx: r.Context(), w: w, ctl: http.NewResponseController(w), runs: runs, at: map[string]cursor{},
		live: s.snapshotter != nil && slices.Contains(runs, s.opt.Live.Run)}
	// the request is complete; the writers of some tests have no deadlines
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

// untilTick returns the time to the next multiple of tick. All clients wake at the same moments, so
// that many clients disturb training as rarely as one.
func untilTick(now time.Time, tick time.Duration) time.Duration {
	return tick - time.Duration(now.UnixNano())%tick
}

// sendUpdates sends new rows, and reports whether the client is still connected.
func (st *stream) sendUpdates(now time.Time) bool {
	if st.sent.IsZero() && !st.send("", nil, now) {
		return false
	}
	for _, run := range st.runs {
		for more := true; more; { // a long history takes several messages
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

// sendRunList notifies the client if the list of runs has changed.
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

// do calls work within the budget of streams. It returns false if the client disconnects before.
func (st *stream) do(work func()) bool { return st.s.events.do(st.ctx, 0, work) }

// send writes an event, or a comment if the name is empty.
func (st *stream) send(event string, data []byte, now time.Time) bool {
	if err := st.ctl.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return false // a client could block a stream that has no deadline
	}
	st.s.events.charge(eventCost+sendCost(len(data)), time.Now())
	text := ":\n\n"
	if event != "" {
		text = "event: " + event + "\ndata: " + string(data) + "\n\n" // encoded JSON has no newlines
	}
	if _, err := st.w.Write([]byte(text)); err != nil {
		return false
	}
	st.sent = now
	return st.ctl.Flush() == nil
}

// fingerprint returns a string that changes with the list of runs.
func (s *Server) fingerprint(now time.Time) string {
	var b strings.Builder
	for _, i := range s.runs.list(now) {
		b.WriteString(i.Run + "\x00" + i.Status + "\x00")
	}
	return b.String()
}
