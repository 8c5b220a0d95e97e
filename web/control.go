package web

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"mime"
	"net/http"
	"slices"
)

// TokenHeader is the header that carries the token. A page from elsewhere cannot set it without our
// consent, which it does not get.
const TokenHeader = "X-Fspda-Token"

// actions are what can be asked of a live run.
var actions = []string{"pause", "resume", "checkpoint", "stop"}

// NewToken returns a token that nobody can guess.
func NewToken() string { return rand.Text() }

// steer does what a button says, for those who have the token.
func (s *Server) control(w http.ResponseWriter, r *http.Request) {
	if s.opt.Live == nil || s.opt.Token == "" {
		http.Error(w, "no run of this process can be steered", http.StatusNotFound)
		return
	}
	got, want := sha256.Sum256([]byte(r.Header.Get(TokenHeader))), sha256.Sum256([]byte(s.opt.Token))
	if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
		http.Error(w, "the token is missing or wrong: it stands in the terminal that started the run",
			http.StatusForbidden)
		return
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		http.Error(w, "want application/json", http.StatusUnsupportedMediaType)
		return
	}
	var order struct {
		Run    string `json:"run"`
		Action string `json:"action"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4096)).Decode(&order); err != nil {
		http.Error(w, `want {"run":…,"action":…}`, http.StatusBadRequest)
		return
	}
	if order.Run != s.opt.Live.Run || !slices.Contains(actions, order.Action) {
		http.Error(w, "no such run, or no such action: "+clean(order.Action), http.StatusBadRequest)
		return
	}
	if err := s.opt.Live.Control(order.Action); err != nil {
		http.Error(w, clean(err.Error()), http.StatusConflict)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
