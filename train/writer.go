package train

import (
	"go.uber.org/zap"

	"fspda/train/evaluate"
	"fspda/train/snapshot"
)

// writer puts checkpoints and the best model on the disk while the agents and the evaluations go
// on. At most one checkpoint is under way: it is written from the agents' snapshots, of which each
// agent has another, and its vectors pass through the host one by one. Of best models the newest
// that waits is enough, but it is written before any checkpoint that comes after it: a run that
// goes on from there would not make it again.
type writer struct {
	run   *run
	saves chan saving
	bests chan evaluate.Evaluation // room for the newest
	*snapshot.Reservation
}

func newWriter(r *run) *writer {
	return &writer{run: r, saves: make(chan saving), bests: make(chan evaluate.Evaluation, 1),
		Reservation: snapshot.NewReservation()}
}

// save hands a checkpoint over. It waits for one that is still being written.
func (w *writer) save(sv saving) {
	w.saves <- sv
}

// keepBest hands a mean model over that is better than all before. Only one goroutine may call it.
func (w *writer) keepBest(ev evaluate.Evaluation) {
	select {
	case <-w.bests:
	default:
	}
	w.bests <- ev
}

// close says that nothing more comes.
func (w *writer) close() { close(w.saves) }

// work writes until close, and what was handed over before it.
func (w *writer) work() error {
	for {
		select {
		case ev := <-w.bests:
			if err := w.writeBest(ev); err != nil {
				return err
			}
		case sv, more := <-w.saves:
			select {
			case ev := <-w.bests:
				if err := w.writeBest(ev); err != nil {
					return err
				}
			default:
			}
			if !more {
				return nil
			}
			if err := w.writeSave(sv); err != nil {
				return err
			}
		}
	}
}

// drain takes what comes after an error, so that nobody waits for ever.
func (w *writer) drain() {
	for range w.saves {
	}
}

func (w *writer) writeSave(sv saving) error {
	defer w.Release()
	r := w.run
	if err := r.opt.Folder.writeCheckpoint(r.setup, sv); err != nil {
		return err
	}
	r.log.Info("checkpoint", zap.Int("iteration", sv.set[0].T), zap.String("folder", r.opt.Folder.Path))
	r.releaseSnapshots(sv.set)
	return nil
}

func (w *writer) writeBest(ev evaluate.Evaluation) error {
	return w.run.opt.Folder.writeBest(w.run.setup, ev)
}
