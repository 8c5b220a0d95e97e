package runfolder

import (
	"go.uber.org/zap"

	"fspda/train/config"
	"fspda/train/evaluate"
	"fspda/train/snapshot"
)

// Writer writes checkpoints and the best model in the background. At most one checkpoint is in
// progress: it is written from the snapshots of the agents, each of which has another one. Of the
// best models that wait only the newest is kept, but it is written before any later checkpoint,
// because a run that is resumed from there would not evaluate it again.
type Writer struct {
	*snapshot.Reservation
	folder  *Folder
	setup   *config.Setup
	log     *zap.Logger
	release func(set []*snapshot.Snapshot)
	saves   chan CheckpointData
	flushes chan chan struct{}
	bests   chan evaluate.Evaluation // holds the newest
}

// NewWriter makes a writer. It calls release with the snapshots of each checkpoint that is written.
func NewWriter(f *Folder, s *config.Setup, log *zap.Logger, release func(set []*snapshot.Snapshot)) *Writer {
	return &Writer{Reservation: snapshot.NewReservation(), folder: f, setup: s, log: log, release: release,
		saves: make(chan CheckpointData), flushes: make(chan chan struct{}), bests: make(chan evaluate.Evaluation, 1)}
}

// Save queues a checkpoint. It waits for one that is being written.
func (w *Writer) Save(sv CheckpointData) { w.saves <- sv }

// KeepBest queues the mean model of the best row so far. Only one goroutine may call it.
func (w *Writer) KeepBest(ev evaluate.Evaluation) {
	select {
	case <-w.bests:
	default:
	}
	w.bests <- ev
}

// Flush waits until the best model is written.
func (w *Writer) Flush() {
	done := make(chan struct{})
	w.flushes <- done
	<-done
}

// Close ends Work once the queue is written.
func (w *Writer) Close() { close(w.saves) }

// Work writes the queue until Close.
func (w *Writer) Work() error {
	for {
		select {
		case ev := <-w.bests:
			if err := w.folder.writeBest(w.setup, ev); err != nil {
				return err
			}
		case done := <-w.flushes:
			err := w.writeWaiting()
			close(done)
			if err != nil {
				return err
			}
		case sv, more := <-w.saves:
			if err := w.writeWaiting(); err != nil {
				return err
			}
			if !more {
				return nil
			}
			if err := w.writeCheckpoint(sv); err != nil {
				return err
			}
		}
	}
}

// writeWaiting writes the best model that waits, if there is one.
func (w *Writer) writeWaiting() error {
	select {
	case ev := <-w.bests:
		return w.folder.writeBest(w.setup, ev)
	default:
		return nil
	}
}

// Drain discards the queue after an error of Work.
func (w *Writer) Drain() {
	for {
		select {
		case done := <-w.flushes:
			close(done)
		case _, more := <-w.saves:
			if !more {
				return
			}
		}
	}
}

func (w *Writer) writeCheckpoint(sv CheckpointData) error {
	defer w.Release()
	if err := w.folder.WriteCheckpoint(w.setup, sv); err != nil {
		return err
	}
	w.log.Info("checkpoint", zap.Int("iteration", sv.Snapshots[0].T), zap.String("folder", w.folder.Path))
	w.release(sv.Snapshots)
	return nil
}
