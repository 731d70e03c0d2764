package lifecycle

// Images are built from scratch, without files of a distribution: CA certificates and time zones are compiled in. The system's are
// preferred where they exist.
import (
	_ "time/tzdata"

	_ "golang.org/x/crypto/x509roots/fallback"
)
