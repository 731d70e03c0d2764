// Package maintenance suppresses the alerts of AvS about an instance while its cluster is upgraded.
package maintenance
