"""The results as a table: groups of cases by language."""

from collections import defaultdict

from runner.cases import Case


class Results:
    """Outcomes of each case in each language."""

    def __init__(self, cases: list[Case]) -> None:
        self._cases = cases
        self._problems: dict[tuple[str, str, str], str] = {}
        self._broken: list[str] = []
        self._languages: list[str] = []

    def add(self, language: str, case: Case, problem: str) -> None:
        """Records a case's outcome; an empty problem is a success."""
        if language not in self._languages:
            self._languages.append(language)
        self._problems[(language, case.group, case.name)] = problem

    def broken(self, language: str, problem: str) -> None:
        """Records what went wrong outside of a case."""
        self._broken.append(f"{language}: {problem}")

    def failed(self) -> bool:
        """Returns True if any case failed, or something outside of the cases."""
        return bool(self._broken) or any(self._problems.values())

    def markdown(self) -> str:
        """The table: a row for each case that calls, and one for each file of cases that don't."""
        header = ["case", *self._languages]
        lines = [_row(header), _row(["---", *("---:" for _ in self._languages)])]
        files: dict[str, list[Case]] = defaultdict(list)
        for case in self._cases:
            if "/" in case.group:
                files[case.group].append(case)
            else:
                marks = [self._mark(language, [case]) for language in self._languages]
                lines.append(_row([f"{case.group}: {case.name}", *marks]))
        for group, cases in files.items():
            marks = [self._mark(language, cases) for language in self._languages]
            lines.append(_row([f"{group}.json, {len(cases)} cases", *marks]))
        return "\n".join(lines) + "\n"

    def failures(self) -> str:
        """Lists the failures, a line each, and the sum."""
        told = [
            f"FAILED {language}: {group}: {name}: {problem}"
            for (language, group, name), problem in self._problems.items()
            if problem
        ]
        passed = len(self._problems) - len(told)
        told += [f"FAILED {problem}" for problem in self._broken]
        return "\n".join([*told, f"{passed} of {len(self._problems)} cases passed"])

    def _mark(self, language: str, cases: list[Case]) -> str:
        keys = [(language, case.group, case.name) for case in cases]
        problems = [self._problems.get(key, "not run") for key in keys]
        wrong = sum(1 for problem in problems if problem)
        if wrong == 0:
            return "ok"
        return "FAILED" if len(cases) == 1 else f"{wrong} FAILED"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
