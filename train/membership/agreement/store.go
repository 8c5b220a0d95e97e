package agreement

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"fspda/internal/bounded"
	"fspda/internal/wholefile"
	"fspda/train/membership"
)

// store keeps the log of Raft. It has a few entries for each change, so that it is written whole.
//
// The file holds the life of the agent, then the state of Raft and its entries, each with its length
// before it. Numbers are uvarints.
type store struct {
	*raft.MemoryStorage
	file  string
	life  int
	empty bool
}

const maxStore = 64 << 20

// openStore reads the log in a file.
func openStore(file string, life int) (*store, error) {
	s := &store{MemoryStorage: raft.NewMemoryStorage(), file: file, life: life, empty: true}
	if file == "" {
		return s, nil
	}
	text, err := bounded.File(file, maxStore)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = s.read(text)
	}
	if err != nil {
		return nil, fmt.Errorf("agreement: the log of the members in %s cannot be read: %w: remove the agent's "+
			"folder, and it joins as a new one", file, err)
	}
	s.empty = false
	return s, nil
}

// Kept returns the life of the agent whose log is in a file, and the state of the members by this log.
// Without a log they are as at the start of a run.
func Kept(file string, r membership.Rules) (life int, v membership.View) {
	state := newState(r)
	text, err := bounded.File(file, maxStore)
	if err != nil {
		return 0, state.view()
	}
	first, _ := binary.Uvarint(text)
	s, err := openStore(file, int(first))
	if err != nil {
		return int(first), state.view()
	}
	h, _, _ := s.InitialState() // Of a store in memory: it does not fail.
	if entries, err := s.Entries(1, h.GetCommit()+1, maxStore); err == nil {
		for _, raw := range entries {
			if e, _, ok, err := read(raw); ok && err == nil {
				state.apply(e)
			}
		}
	}
	return int(first), state.view()
}

var errStore = errors.New("it is damaged")

func (s *store) read(text []byte) error {
	r := bytes.NewReader(text)
	next := func(m proto.Message) error {
		n, err := binary.ReadUvarint(r)
		if err != nil || n > uint64(r.Len()) {
			return errStore
		}
		part := make([]byte, n)
		_, _ = r.Read(part)
		return proto.Unmarshal(part, m)
	}
	if life, err := binary.ReadUvarint(r); err != nil || int(life) != s.life {
		return fmt.Errorf("it is of life %d of the agent, expected %d", life, s.life)
	}
	h := &raftpb.HardState{}
	if err := next(h); err != nil {
		return err
	}
	var entries []*raftpb.Entry
	for r.Len() > 0 {
		e := &raftpb.Entry{}
		if err := next(e); err != nil {
			return err
		}
		entries = append(entries, e)
	}
	if h.GetCommit() > uint64(len(entries)) {
		return errStore
	}
	return errors.Join(s.SetHardState(h), s.Append(entries))
}

// keep keeps the entries and the state that Raft has ready. They are on the disk when keep returns.
func (s *store) keep(rd raft.Ready) error {
	if rd.HardState != nil && !raft.IsEmptyHardState(rd.HardState) {
		if err := s.SetHardState(rd.HardState); err != nil {
			return err
		}
	}
	if err := s.Append(rd.Entries); err != nil {
		return err
	}
	if s.file == "" || rd.HardState == nil && len(rd.Entries) == 0 {
		return nil
	}
	h, _, err := s.InitialState()
	if err != nil {
		return err
	}
	text := binary.AppendUvarint(nil, uint64(s.life))
	add := func(m proto.Message) {
		part, e := proto.Marshal(m)
		err = errors.Join(err, e)
		text = append(binary.AppendUvarint(text, uint64(len(part))), part...)
	}
	add(h)
	last, _ := s.LastIndex()
	entries, e := s.Entries(1, last+1, maxStore)
	if err = errors.Join(err, e); last == 0 {
		err = nil
	}
	for _, e := range entries {
		add(e)
	}
	if err != nil {
		return err
	}
	return wholefile.Publish(s.file, text)
}

// quiet is a logger of Raft that says nothing: the group logs changes of the members.
type quiet struct{}

func (quiet) Debug(...any)              {}
func (quiet) Debugf(string, ...any)     {}
func (quiet) Error(...any)              {}
func (quiet) Errorf(string, ...any)     {}
func (quiet) Info(...any)               {}
func (quiet) Infof(string, ...any)      {}
func (quiet) Warning(...any)            {}
func (quiet) Warningf(string, ...any)   {}
func (quiet) Fatal(v ...any)            { panic(fmt.Sprint(v...)) }
func (quiet) Fatalf(f string, v ...any) { panic(fmt.Sprintf(f, v...)) }
func (quiet) Panic(v ...any)            { panic(fmt.Sprint(v...)) }
func (quiet) Panicf(f string, v ...any) { panic(fmt.Sprintf(f, v...)) }
