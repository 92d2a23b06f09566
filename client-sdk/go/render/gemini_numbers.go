package render

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"

	"toolgate.dev/go/internal/ordered"
)

// whole is a count as a whole number, also where it was written `1.0`.
func whole(count json.Number) json.Number {
	number := floatOf(count)
	if ordered.IsInteger(count) || math.IsInf(number, 0) {
		return count
	}
	return wholeOf(math.Trunc(number))
}

// bounds gives the inclusive ones, which an exclusive bound may tighten.
func (c *converter) bounds(schema *ordered.Object, at string, converted *ordered.Object) {
	sides := []struct{ inclusive, exclusive string }{
		{"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"},
	}
	for _, side := range sides {
		isMinimum := side.inclusive == "minimum"
		held, isBound := schema.Get(side.inclusive).(json.Number)
		limit := schema.Get(side.exclusive)
		if limit == true && isBound {
			limit = held // As JSON Schema had it until draft 4.
		}
		if number, isLimit := limit.(json.Number); isLimit {
			nearest := number
			if converted.Get("type") == "INTEGER" && !math.IsInf(floatOf(number), 0) {
				nearest = beyond(number, isMinimum)
			} else {
				c.losses.add(pointer(at, side.exclusive), side.exclusive, "the bound itself is let in")
			}
			if !isBound || isTighter(held, nearest, isMinimum) {
				held, isBound = nearest, true
			}
		}
		if isBound {
			converted.Set(side.inclusive, held)
		}
	}
}

func isTighter(held, other json.Number, isMinimum bool) bool {
	difference := exact(other).Cmp(exact(held))
	return isMinimum && difference > 0 || !isMinimum && difference < 0
}

// beyond is the nearest whole number that an exclusive bound lets in.
func beyond(limit json.Number, isMinimum bool) json.Number {
	step := big.NewInt(1)
	if !isMinimum {
		step.Neg(step)
	}
	if number, ok := new(big.Int).SetString(string(limit), 10); ok {
		return json.Number(number.Add(number, step).String())
	}
	if isMinimum {
		return wholeOf(math.Floor(floatOf(limit)) + 1)
	}
	return wholeOf(math.Ceil(floatOf(limit)) - 1)
}

// floatOf is the nearest float; infinite for what is too large.
func floatOf(number json.Number) float64 {
	float, _ := strconv.ParseFloat(string(number), 64)
	return float
}

// exact compares large whole numbers by each digit, others as floats.
func exact(number json.Number) *big.Float {
	if whole, ok := new(big.Int).SetString(string(number), 10); ok {
		return new(big.Float).SetInt(whole)
	}
	return big.NewFloat(floatOf(number))
}

func wholeOf(number float64) json.Number {
	digits, _ := big.NewFloat(number).Int(nil)
	return json.Number(digits.String())
}
