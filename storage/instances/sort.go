package instances

import (
	"strings"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/storage"
)

// Sort is an order in which instances can be listed. Each order has an index, so that the cost of a page does not depend on the
// number of instances. A leading minus sign means descending order.
type Sort string

// Orders of lists. Instances with the same plan, region or account are then sorted by creation time, and instances with the same
// name by ID.
const (
	Newest              Sort = "newest"
	Oldest              Sort = "oldest"
	ByName              Sort = "name"
	ByNameDescending    Sort = "-name"
	ByPlan              Sort = "plan"
	ByPlanDescending    Sort = "-plan"
	ByRegion            Sort = "region"
	ByRegionDescending  Sort = "-region"
	ByAccount           Sort = "account"
	ByAccountDescending Sort = "-account"
)

// Sorts returns all orders. Newest, the default, is the first.
func Sorts() []Sort {
	return []Sort{
		Newest, Oldest, ByName, ByNameDescending, ByPlan, ByPlanDescending, ByRegion, ByRegionDescending, ByAccount, ByAccountDescending,
	}
}

// nameKey is the SQL expression by which names are sorted and searched. It ignores case.
const nameKey = "lower(instances.name)"

// order describes an ORDER BY clause.
type order struct {
	// key is the first column to sort by, or empty. placeholder is the expression for the value of this column in a cursor.
	key, placeholder string
	// timed is true if entries are sorted by creation time before they are sorted by ID.
	timed, descending bool
}

// by returns the order that the Sort stands for. bytewise is the SQL fragment that storage.DB.Bytewise returns.
func (s Sort) by(bytewise string) order {
	column, descending := strings.CutPrefix(string(s), "-")
	sorted := order{placeholder: "?", timed: true, descending: descending}

	switch column {
	case string(ByName):
		sorted.key, sorted.placeholder, sorted.timed = nameKey+bytewise, "lower(?)", false
	case string(ByPlan):
		sorted.key = "instances.plan_name"
	case string(ByRegion):
		sorted.key = "instances.region"
	case string(ByAccount):
		sorted.key = "instances.global_account_id"
	default:
		sorted.descending = s != Oldest
	}

	return sorted
}

// columns returns the columns to sort by, and the placeholders for their values in a cursor.
func (o order) columns() (columns, placeholders []string) {
	if o.key != "" {
		columns, placeholders = append(columns, o.key), append(placeholders, o.placeholder)
	}

	if o.timed {
		columns, placeholders = append(columns, "instances.created_at"), append(placeholders, "?")
	}

	return append(columns, "instances.id"), append(placeholders, "?")
}

// clause returns the ORDER BY clause.
func (o order) clause() string {
	columns, _ := o.columns()
	if !o.descending {
		return " ORDER BY " + strings.Join(columns, ", ") + " "
	}

	return " ORDER BY " + strings.Join(columns, " DESC, ") + " DESC "
}

// after adds the condition that selects the instances after the filter's Before, BeforeID and BeforeKey.
func (o order) after(conditions *storage.Conditions, f Filter) {
	var args []any

	if o.key != "" {
		args = append(args, f.BeforeKey)
	}

	if o.timed {
		args = append(args, storage.At(f.Before))
	}

	compared := ") > ("
	if o.descending {
		compared = ") < ("
	}

	columns, placeholders := o.columns()
	conditions.Add(true, "("+strings.Join(columns, ", ")+compared+strings.Join(placeholders, ", ")+")", append(args, f.BeforeID)...)
}

// After returns the filter for the page that follows the given instance in the same order.
func (f Filter) After(last environment.Instance) Filter {
	f.Before, f.BeforeID, f.BeforeKey = last.CreatedAt, last.ID, ""

	switch strings.TrimPrefix(string(f.Sort), "-") {
	case string(ByName):
		f.BeforeKey = last.Name
	case string(ByPlan):
		f.BeforeKey = last.PlanName
	case string(ByRegion):
		f.BeforeKey = last.Region
	case string(ByAccount):
		f.BeforeKey = last.GlobalAccountID
	}

	return f
}

// Cursor returns the cursor of the page that the filter selects.
func (f Filter) Cursor() storage.Cursor {
	cursor := storage.Cursor{Sort: string(f.Sort), Key: f.BeforeKey, At: f.Before, ID: f.BeforeID}
	if f.Sort == Newest {
		cursor.Sort = ""
	}

	return cursor
}
