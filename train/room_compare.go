package train

import "go.uber.org/zap"

// forecastRooms is Rooms for a run that is meant to be, and has all agents. A device that cannot
// tell of its memory has failed, of which the run will hear.
func (r *run) forecastRooms(places []Place) []Room {
	if r.setup.Trial() || r.opt.Process != nil {
		return nil
	}
	rooms, err := ForecastRooms(r.setup, places...)
	if err != nil {
		return nil
	}
	return rooms
}

// compareRooms asks the devices what was taken of them, logs it beside what was forecast, and
// returns both. What other programs take meanwhile is in it too. A device that is lost says
// nothing.
func (r *run) compareRooms() []Room {
	var all []Room
	at := 0
	for _, p := range r.workers {
		d, ok := p.Device.(separate)
		if !ok || at == len(r.rooms) {
			continue
		}
		room := r.rooms[at]
		at++
		var err error
		if room.Taken, err = d.Taken(); err != nil {
			continue
		}
		all = append(all, room)
		r.log.Info("memory of "+room.Name, zap.String("forecast", gigabytes(room.Need)),
			zap.String("taken", gigabytes(room.Taken)),
			zap.Float64("taken_over_forecast", float64(room.Taken)/float64(room.Need)))
	}
	return all
}
