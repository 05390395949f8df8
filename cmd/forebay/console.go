package main

import (
	"net/http"

	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
	"github.com/forebayhq/forebay/console"
)

// registerConsole puts the pages on the mux; what they show comes from the API.
func (s *server) registerConsole(mux *http.ServeMux) {
	if s.settings.Server.Has(config.RoleConsole) && s.settings.Server.Has(config.RoleAPI) {
		console.New().Register(mux)
	}
}
