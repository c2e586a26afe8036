"""The page that compares systems, as a gradio app: with all metrics, or with a single one.

`build_page` makes the app. `_Page.build` makes its components from top to bottom: texts, metrics,
result. Its methods `_connect_form`, `_connect_comparison` and `_connect_segments` then say which
handler an event of a component calls.

The page offers metrics with their presets (ready-made settings and models), grouped by the side
that they compare translations with: source, reference or both. Each offer is a
`mtmetrics.page.offers.MetricChoice`. Its key is its name on the command line, such as
``sentsim:mini``. A signature sums up the settings of a metric in one line. A `Column` is a column of
texts, such as the sources; ``gradio.Column`` is a container of components.

The value of a gradio component lives in the browser of a visitor. A component ``gradio.State`` is
not shown: it keeps a value for one visitor on the machine that serves the page.
"""

import contextlib
import functools
import html
import math
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtmetrics.checks import split_pair
from mtmetrics.errors import InputError, MTMetricsError, require_extra
from mtmetrics.layout import metric_path
from mtmetrics.page import views
from mtmetrics.page.comparing import Comparer, ComparisonResult, Progress
from mtmetrics.page.downloads import FILES, command, write_files
from mtmetrics.page.endpoints import Endpoints
from mtmetrics.page.explaining import heatmap, mark_wrong_words
from mtmetrics.page.offers import (
    MetricChoice,
    descriptions,
    offers,
    offers_from_names,
    ticked_offers,
)
from mtmetrics.page.texts import TextInput, Texts, read_texts
from mtmetrics.reports.example import example
from mtmetrics.scorers.side import Column, Side

if TYPE_CHECKING:
    import gradio
    from gradio.components import Component

# Component of gradio -> its value. Handlers take and return such dictionaries.
Values = dict[Any, Any]
# Keywords of a component or of an event.
Keywords = dict[str, Any]

# Seconds for which results and files are kept.
_KEEP_SECONDS = 3600
# Number of boxes for pasted systems, and number of those that are shown at first.
_MAX_SYSTEM_BOXES = 6
_FIRST_SYSTEM_BOXES = 2
_LANGUAGE_NAMES = {
    "cs": "Czech",
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "et": "Estonian",
    "fi": "Finnish",
    "fr": "French",
    "lv": "Latvian",
    "ne": "Nepali",
    "ro": "Romanian",
    "ru": "Russian",
    "si": "Sinhala",
    "tr": "Turkish",
    "zh": "Chinese",
}
_TITLE = "Which translation is better?"
_INTRODUCTION = (
    "Compare the translations of several systems, with or without references: scores with "
    "intervals, the differences that are more than chance, and the segments and words that they "
    "come from. Everything is computed on the machine that serves this page; nothing is sent elsewhere."
)
_FOOTER = (
    '<p class="mt-foot">mtmetrics: evaluation metrics for machine translation. The presets called mini are small '
    "stand-ins that run anywhere; look at the segments before you trust a number.</p>"
)
# Keywords of events and endpoints that run models: one of them runs at a time, the others wait.
_ONE_AT_A_TIME: Keywords = {"concurrency_limit": 1, "concurrency_id": "model"}
# Keywords of all handlers: hides them from the public API, and hides gradio's progress bar.
_HANDLER_KEYWORDS: Keywords = {"api_visibility": "private", "show_progress": "hidden"}
# Keywords of handlers that run models.
_MODEL_HANDLER_KEYWORDS: Keywords = _ONE_AT_A_TIME | _HANDLER_KEYWORDS
# Languages that are chosen at first, those of the example.
_SOURCE_LANGUAGE, _TARGET_LANGUAGE = "de", "en"
# Side to compare with -> label of its metrics.
_GROUPS = {
    "source": "Against the source, without references",
    "reference": "Against references",
    "both": "Against source and reference together",
}
# Runs in the browser. A click on a translation becomes a `click` event of the list of segments,
# with the numbers of the segment and of the system; `_Page._toggle_heatmap` handles it.
_CLICK_SCRIPT = """
element.addEventListener('click', event => {
  const output = event.target.closest('[data-segment]');
  if (output) trigger('click', {segment: Number(output.dataset.segment), system: Number(output.dataset.system)});
});
"""


@dataclass(frozen=True)
class _SystemBox:
    """Components for a pasted system: the boxes, and the container that shows or hides them."""

    container: "gradio.Column"
    name: "gradio.Textbox"
    text: "gradio.Textbox"


@dataclass(frozen=True)
class _MetricGroup:
    """Components for the metrics that compare with one side: the boxes to tick, and the container
    that shows or hides them."""

    container: "gradio.Column"
    boxes: "gradio.CheckboxGroup"


class _Page:
    """The components of the page, and the handlers of its events.

    The form is the part that a visitor fills in: the boxes for texts and languages, and the boxes
    to tick metrics. If the inputs of an event are a set of components, gradio passes a dictionary to
    the handler: component -> value. In this class `form` is such a dictionary. A handler that
    changes several components returns a dictionary too.

    A new input for texts (a box, file or menu) is made with `_add_text_input`, and read where its value
    is used:

    - a language in `_lang_pair`;
    - a text of all systems in `_text_columns`, the texts of a system in `_systems`;
    - anything else in `_texts`, or in `_run` if it concerns the comparison and not the texts.

    A new box of the result is made in `_build_result`, and filled in `_result_values`. It is also
    one of the outputs in `_connect_comparison`, and, if it changes the list of segments, one of the
    inputs in `_list_event_keywords`.

    Args:
        metric: the only metric that the page offers; None for all.
        extra_metrics: names of further metrics to offer.
    """

    def __init__(self, metric: str | None, extra_metrics: Sequence[str]) -> None:
        import gradio

        self.gr = gradio
        named = offers_from_names(extra_metrics)
        bundled = (offer for offer in offers() if metric is None or offer.spec.metric == metric)
        offers_by_key: dict[str, MetricChoice] = {}
        for offer in (*named, *bundled):
            # A metric that is named stands first, and is not offered twice.
            offers_by_key.setdefault(offer.key, offer)
        self.offers = list(offers_by_key.values())
        if not self.offers:
            subject = "no metric" if metric is None else f"{metric}: none of its presets"
            listing = "mtmetrics list" if metric is None else f"mtmetrics list {metric}"
            raise MTMetricsError(
                f"{subject} can run on this machine; {listing} says what they lack"
            )
        self.title, self.introduction = _TITLE, _INTRODUCTION
        self.has_one_metric = metric is not None
        if metric is not None:
            description = descriptions()[metric]
            self.title = description["title"]
            scale = f"Higher is better; a segment's score is {description['range']}."
            self.introduction = f"{description['about']} {scale}"
        sides = {offer.side for offer in self.offers}
        # While the form has no texts, it shows the metrics for these columns: the source if a metric
        # compares with it, otherwise the references, otherwise both.
        self.default_columns = next(side for side in Side if side in sides).columns
        self.comparer = Comparer()
        # The boxes, files and menus for texts and languages, see `_add_text_input`.
        self.text_inputs: list[Component] = []

    def build(self) -> "gradio.Blocks":
        """Makes all components, connects their events, and publishes the endpoints of the API."""
        gr = self.gr
        title = self.title if self.has_one_metric else "mtmetrics: compare"
        with gr.Blocks(
            title=title, analytics_enabled=False, delete_cache=(_KEEP_SECONDS, _KEEP_SECONDS)
        ) as app:
            gr.HTML(f'<div class="mt-head"><h1>{self.title}</h1><p>{self.introduction}</p></div>')
            self._build_input()
            self._build_metrics()
            self._build_result()
            gr.HTML(_FOOTER)
            self._connect_form()
            self._connect_comparison()
            self._connect_segments()
            endpoints = Endpoints(self.offers, self.comparer)
            endpoints.publish(**_ONE_AT_A_TIME, api_visibility="public")
        return app

    def _add_text_input(self, component: "Component") -> Any:
        """Adds a box, file or menu for texts or languages to the form, and returns it.

        When its value changes, the summary of the texts and the metrics are updated.
        """
        self.text_inputs.append(component)
        return component

    def _languages(self) -> list[tuple[str, str]]:
        """Returns label and code of the languages that at least one metric supports."""
        pairs = {pair for offer in self.offers for pair in offer.languages}
        codes = {code for pair in pairs for code in pair.split("-")} - {"any"}
        return sorted((f"{_LANGUAGE_NAMES.get(code, code)} ({code})", code) for code in codes)

    def _build_input(self) -> None:
        """Makes the boxes for languages and texts."""
        gr = self.gr
        languages = self._languages()
        gr.HTML("<h2><span>1</span>Texts</h2>", elem_classes="mt-step")
        with gr.Row():
            menu_style: Keywords = {"allow_custom_value": True, "min_width": 150}
            self.source_language = self._add_text_input(
                gr.Dropdown(languages, label="From", value=_SOURCE_LANGUAGE, **menu_style)
            )
            self.target_language = self._add_text_input(
                gr.Dropdown(languages, label="Into", value=_TARGET_LANGUAGE, **menu_style)
            )
        with gr.Tab("Upload"), gr.Row():
            file_style: Keywords = {"height": 120, "min_width": 240}
            self.source_file = self._add_text_input(
                gr.File(label="Source, a segment per line", **file_style)
            )
            self.system_files = self._add_text_input(
                gr.File(label="Systems, a file for each", file_count="multiple", **file_style)
            )
            self.reference_file = self._add_text_input(
                gr.File(label="References, if there are any", **file_style)
            )
        with gr.Tab("Paste"):
            with gr.Row():
                text_style: Keywords = {"lines": 5, "max_lines": 12, "min_width": 280}
                self.source_text = self._add_text_input(
                    gr.Textbox(label="Source, a segment per line", **text_style)
                )
                self.reference_text = self._add_text_input(
                    gr.Textbox(label="References, if there are any", **text_style)
                )
            with gr.Row():
                self.system_boxes = [
                    self._system_box(number) for number in range(1, _MAX_SYSTEM_BOXES + 1)
                ]
            self.add_system_button = gr.Button("Add a system", size="sm")
        self.shown_box_count = gr.State(_FIRST_SYSTEM_BOXES)
        with gr.Row():
            self.text_summary = gr.HTML(_summary(None), elem_classes="mt-facts")
            self.example_button = gr.Button("Try the example", size="sm", scale=0, min_width=150)

    def _system_box(self, number: int) -> "_SystemBox":
        """Makes the boxes for the name and the translations of a pasted system; systems are
        numbered from 1."""
        gr = self.gr
        with gr.Column(min_width=280, visible=number <= _FIRST_SYSTEM_BOXES) as container:
            name = gr.Textbox(f"system-{number}", label=f"Name of system {number}")
            text = gr.Textbox(label=f"Translations of system {number}", lines=5, max_lines=12)
        return _SystemBox(container, self._add_text_input(name), self._add_text_input(text))

    def _build_metrics(self) -> None:
        """Makes the boxes to tick metrics, and the buttons below them."""
        gr = self.gr
        gr.HTML("<h2><span>2</span>Metrics</h2>", elem_classes="mt-step")
        lang_pair = f"{_SOURCE_LANGUAGE}-{_TARGET_LANGUAGE}"
        self.metric_groups: dict[str, _MetricGroup] = {}
        for side, label in _GROUPS.items():
            choices, ticked = self._choices(side, self.default_columns, lang_pair, [])
            with gr.Column(visible=bool(choices)) as container:
                gr.HTML(f'<p class="mt-group">{label}</p>')
                boxes = gr.CheckboxGroup(
                    choices,
                    value=ticked,
                    show_label=False,
                    container=False,
                    elem_classes="mt-metrics",
                )
            self.metric_groups[side] = _MetricGroup(container, boxes)
        with gr.Row():
            self.start_button = gr.Button("Compare", variant="primary", scale=3)
            self.stop_button = gr.Button("Stop", visible=False, scale=1)
        self.status = gr.HTML("", elem_id="mt-status")
        # A list that the running comparison shares with the Stop button. It is empty until the
        # button is pressed: then `_stop` appends to it, and `_run` sees that and ends.
        self.stop_signal = gr.State([])

    def _build_result(self) -> None:
        """Makes the components of the result, hidden at first."""
        gr = self.gr
        # The result that is shown, a `ComparisonResult`.
        self.comparison = gr.State(time_to_live=_KEEP_SECONDS)
        # The heatmap that is shown, a `views.OpenHeatmap`, or None.
        self.open_heatmap = gr.State()
        with gr.Column(visible=False, elem_classes="mt-result") as self.result_container:
            gr.HTML("<h2>Result</h2>")
            self.overview = gr.HTML("")
            with gr.Row():
                self.downloads = {
                    name: gr.DownloadButton(label, size="sm", min_width=120)
                    for name, label in FILES.items()
                }
            gr.HTML("<h3>Segments</h3>")
            with gr.Row():
                self.metric_menu = gr.Dropdown(
                    label="Metric", info="of scores, marked words and heatmaps", min_width=180
                )
                self.order_menu = gr.Dropdown(
                    label="Order", info="which segments come first", min_width=240
                )
                self.page_number = gr.Number(
                    1,
                    label="Page",
                    info=f"{views.SEGMENTS_PER_PAGE} segments each",
                    precision=0,
                    minimum=1,
                    min_width=90,
                )
            self.segment_list = gr.HTML("", js_on_load=_CLICK_SCRIPT, elem_id="mt-segments")
            with gr.Row():
                self.previous_button = gr.Button("Previous", size="sm")
                self.next_button = gr.Button("Next", size="sm")
            with gr.Accordion("Signatures, and the command for the shell", open=False):
                self.signatures = gr.HTML("", elem_classes="mt-signatures")

    def _connect_form(self) -> None:
        """Connects the boxes for texts, and the buttons beside them.

        A change of a text updates the summary of the texts and the metrics. One button shows the
        boxes of one more system, the other fills in the example.
        """
        gr = self.gr
        change_events = []
        for component in self.text_inputs:
            # A text is read when the visitor leaves its box, not at every keystroke.
            is_typed = isinstance(component, gr.Textbox)
            change_events.append(component.blur if is_typed else component.change)
        group_containers = [group.container for group in self.metric_groups.values()]
        form_outputs = [self.text_summary, *group_containers, *self._checkboxes()]
        gr.on(
            change_events,
            self._update_form,
            self._form_components(),
            form_outputs,
            **_HANDLER_KEYWORDS,
        )

        system_containers = [box.container for box in self.system_boxes]
        self.add_system_button.click(
            self._add_system,
            self.shown_box_count,
            [self.shown_box_count, *system_containers],
            **_HANDLER_KEYWORDS,
        )
        example_outputs = [
            self.source_language,
            self.target_language,
            self.source_file,
            self.reference_file,
            self.system_files,
        ]
        self.example_button.click(self._show_example, None, example_outputs, **_HANDLER_KEYWORDS)

    def _connect_comparison(self) -> None:
        """Connects the Compare and Stop buttons. After a comparison its segments are listed."""
        outputs = [
            self.status,
            self.result_container,
            self.start_button,
            self.stop_button,
            self.stop_signal,
            self.overview,
            self.metric_menu,
            self.order_menu,
            self.page_number,
            self.signatures,
            self.comparison,
            self.open_heatmap,
            *self.downloads.values(),
        ]
        run = self.start_button.click(
            self._run, self._form_components(), outputs, **_MODEL_HANDLER_KEYWORDS
        )
        run.success(**self._list_event_keywords())
        self.stop_button.click(self._stop, self.stop_signal, self.stop_button, **_HANDLER_KEYWORDS)

    def _connect_segments(self) -> None:
        """Connects the boxes and buttons around the list of segments, and clicks on the list. Each
        event changes the page number or the heatmap, and then updates the list."""
        list_keywords = self._list_event_keywords()
        # A change of metric or order returns to page 1, and closes the heatmap.
        for component in (self.metric_menu, self.order_menu):
            outputs = [self.page_number, self.open_heatmap]
            reset = component.input(lambda: (1, None), None, outputs, **_HANDLER_KEYWORDS)
            reset.then(**list_keywords)
        page_steps = {
            self.page_number.submit: 0,
            self.page_number.blur: 0,
            self.previous_button.click: -1,
            self.next_button.click: 1,
        }
        for event, step in page_steps.items():
            turn_page = functools.partial(_nearest_page, step=step)
            inputs = [self.page_number, self.comparison]
            turn = event(turn_page, inputs, self.page_number, **_HANDLER_KEYWORDS)
            turn.then(**list_keywords)
        inputs = [self.comparison, self.metric_menu, self.open_heatmap]
        click = self.segment_list.click(
            self._toggle_heatmap, inputs, self.open_heatmap, **_MODEL_HANDLER_KEYWORDS
        )
        click.then(**list_keywords)

    def _form_components(self) -> "set[Component]":
        """Returns the components of the form, as inputs of an event."""
        return {*self.text_inputs, *self._checkboxes()}

    def _checkboxes(self) -> "list[Component]":
        """Returns the boxes of all metrics."""
        return [group.boxes for group in self.metric_groups.values()]

    def _list_event_keywords(self) -> Keywords:
        """Returns the keywords of an event that updates the list of segments."""
        inputs = [
            self.comparison,
            self.metric_menu,
            self.order_menu,
            self.page_number,
            self.open_heatmap,
        ]
        return {
            "fn": self._segments_page,
            "inputs": inputs,
            "outputs": self.segment_list,
            **_MODEL_HANDLER_KEYWORDS,
        }

    def _lang_pair(self, form: Values) -> str:
        """Reads the language pair from the two boxes. A hyphen inside a code, as in ``zh-CN``,
        becomes an underscore."""
        codes = [form[self.source_language], form[self.target_language]]
        return "-".join(str(code or "").strip().replace("-", "_") for code in codes)

    def _text_columns(self, form: Values) -> dict[Column, TextInput]:
        """Reads the source and the references, see `_uploaded_or_pasted`."""
        source = _uploaded_or_pasted("source", form[self.source_file], form[self.source_text])
        references = _uploaded_or_pasted(
            "reference", form[self.reference_file], form[self.reference_text]
        )
        return {"sources": source, "references": references}

    def _systems(self, form: Values) -> list[TextInput]:
        """Reads the uploaded systems, then the boxes of pasted systems, empty boxes included."""
        paths = [Path(path) for path in form[self.system_files] or []]
        stems = [path.stem for path in paths]
        systems = []
        for path in paths:
            is_unique = stems.count(path.stem) == 1
            systems.append(TextInput(path.stem if is_unique else path.name, str(path)))
        for box in self.system_boxes:
            name = (form[box.name] or "").strip() or "system"
            systems.append(TextInput(name, None, form[box.text] or ""))
        return systems

    def _texts(self, form: Values) -> Texts:
        """Reads and checks all texts, see `mtmetrics.page.texts.read_texts`."""
        return read_texts(self._lang_pair(form), self._text_columns(form), self._systems(form))

    def _update_form(self, form: Values) -> Values:
        """Shows a summary of the texts, or the problem with them, and the metrics that can score
        them."""
        columns: set[Column] = set()
        texts = None
        error_html = None
        try:
            inputs = self._text_columns(form)
            columns = {column for column, text in inputs.items() if text.is_filled_in}
            if columns and any(text.is_filled_in for text in self._systems(form)):
                texts = self._texts(form)
        except MTMetricsError as error:
            error_html = views.error_problem(error)
        updates = {self.text_summary: error_html or _summary(texts)}
        for side, group in self.metric_groups.items():
            choices, ticked = self._choices(
                side,
                columns or self.default_columns,
                self._lang_pair(form),
                form[group.boxes],
            )
            updates[group.container] = self.gr.Column(visible=bool(choices))
            updates[group.boxes] = self.gr.CheckboxGroup(choices=choices, value=ticked)
        return updates

    def _choices(
        self, side: str, columns: Collection[Column], lang_pair: str, ticked: Sequence[str]
    ) -> tuple[list[tuple[str, str]], list[str]]:
        """Finds the metrics of one group that can score texts.

        Args:
            side: the side that metrics of the group compare with.
            columns: the columns of text that the visitor has filled in.
            lang_pair: the language pair of the texts.
            ticked: keys of the metrics that are ticked now.

        Returns:
            Label and key of each metric that fits; and the keys to tick. Ticked metrics stay
            ticked. If none of them fits, or none is ticked, the default metrics are ticked, or in
            an app for one metric its first preset.
        """
        fitting = [
            offer for offer in self.offers if offer.side == side and offer.fits(columns, lang_pair)
        ]
        fitting.sort(key=lambda offer: not offer.default)
        choices = [(offer.label, offer.key) for offer in fitting]
        still_ticked = [offer.key for offer in fitting if offer.key in ticked]
        defaults = [offer.key for offer in fitting if offer.default]
        if not defaults and self.has_one_metric:
            defaults = [offer.key for offer in fitting[:1]]
        return choices, still_ticked or defaults

    def _add_system(self, shown_box_count: int) -> Values:
        """Shows the boxes of one more system."""
        shown_box_count = min(shown_box_count + 1, _MAX_SYSTEM_BOXES)
        updates: Values = {self.shown_box_count: shown_box_count}
        for index, box in enumerate(self.system_boxes):
            updates[box.container] = self.gr.Column(visible=index < shown_box_count)
        return updates

    def _run(self, form: Values) -> Iterator[Values]:
        """Compares the systems of the form, and yields updates of components.

        The first update shows that a comparison runs, the following ones show its progress. The
        last one shows the result, or hides it after an error, or if the visitor pressed Stop.
        """
        gr = self.gr
        ticked = [key for group in self.metric_groups.values() for key in form[group.boxes]]
        # A new list for each comparison, so that an old press of Stop has no effect.
        stop_signal: list[bool] = []
        running_updates = {
            self.result_container: gr.Column(visible=False),
            self.start_button: gr.Button(interactive=False),
            self.stop_button: gr.Button(visible=True),
            self.stop_signal: stop_signal,
        }
        idle_updates = {
            self.start_button: gr.Button(interactive=True),
            self.stop_button: gr.Button("Stop", visible=False, interactive=True),
        }
        no_result_updates = {self.result_container: gr.Column(visible=False), **idle_updates}
        try:
            texts = self._texts(form)
            metrics = ticked_offers(self.offers, ticked, texts.columns, texts.lang_pair)
            # `compare` yields its progress several times, and at the end the result.
            for state in self.comparer.compare(texts, metrics):
                if stop_signal:
                    yield {self.status: "Stopped.", **no_result_updates}
                    return
                if isinstance(state, Progress):
                    yield {self.status: views.progress(state), **running_updates}
                    # The buttons change once, with the first progress.
                    running_updates = {}
                    continue
                with _folder_for_download() as folder:
                    yield {
                        self.status: "",
                        self.result_container: gr.Column(visible=True),
                        **idle_updates,
                        **self._result_values(state, folder),
                    }
        except MTMetricsError as error:
            yield {self.status: views.error_problem(error), **no_result_updates}
        except Exception:
            # Gradio shows the error. The buttons must not stay as if a comparison ran.
            yield {self.status: "", **no_result_updates}
            raise

    def _stop(self, stop_signal: list[bool]) -> "gradio.Button":
        """Tells the running comparison to end; see `_run`.

        Gradio does not cancel the comparison. It ends by itself, so that it leaves gradio's queue
        as a finished comparison does.
        """
        stop_signal.append(True)
        return self.gr.Button("Stopping", interactive=False)

    def _result_values(self, comparison: ComparisonResult, folder: Path) -> Values:
        """Writes the files of a result into a folder, and returns the values of all components of
        the result."""
        gr = self.gr
        titles = [(metric.offer.title, number) for number, metric in enumerate(comparison.metrics)]
        orders = comparison.orders()
        page_count = _page_count(comparison)
        signatures = []
        for metric in comparison.metrics:
            first_result = next(iter(metric.results.values()))
            signatures.append(f"<code>{html.escape(first_result.signature)}</code>")
        values: Values = {
            self.overview: views.overview(comparison),
            self.metric_menu: gr.Dropdown(choices=titles, value=0),
            self.order_menu: gr.Dropdown(choices=orders, value=orders[0][1]),
            self.page_number: gr.Number(1, maximum=page_count, label=f"Page, of {page_count:,}"),
            self.signatures: f"{''.join(signatures)}<code>{html.escape(command(comparison))}</code>",
            self.comparison: comparison,
            self.open_heatmap: None,
        }
        write_files(comparison, folder)
        for name, button in self.downloads.items():
            values[button] = gr.DownloadButton(value=str(folder / name))
        return values

    def _show_example(self) -> Iterator[Values]:
        """Fills in the form with the bundled example, as uploaded files.

        Pasted texts stay, because they are the work of the visitor. If a source or references are
        pasted, the summary asks to remove one of the two. Pasted systems join those of the example.
        """
        texts = example()
        source, target = split_pair(texts.lang_pair)
        with _folder_for_download() as folder:
            systems = []
            for name, lines in texts.systems.items():
                systems.append(_write_lines(folder / f"{name}.{target}", lines))
            yield {
                self.source_language: source,
                self.target_language: target,
                self.source_file: _write_lines(folder / f"source.{source}", texts.sources),
                self.reference_file: _write_lines(folder / f"reference.{target}", texts.references),
                self.system_files: systems,
            }

    def _segments_page(
        self,
        comparison: ComparisonResult | None,
        metric_number: int,
        order: str,
        page_number: float | None,
        open_heatmap: views.OpenHeatmap | None,
    ) -> str:
        """Returns a page of segments as HTML.

        Args:
            comparison: the result; None if it has expired.
            metric_number: number of the metric, from 0, whose scores order the segments.
            order: name of one of `ComparisonResult.orders`.
            page_number: number of the page of segments, from 1.
            open_heatmap: the heatmap that is shown.
        """
        if comparison is None:
            return views.problem(
                "The scores have expired: they are kept for an hour. Press Compare again."
            )
        first = (_nearest_page(page_number, comparison) - 1) * views.SEGMENTS_PER_PAGE
        segments = comparison.order(metric_number, order)[
            first : first + views.SEGMENTS_PER_PAGE
        ].tolist()
        translations = _marked_translations(comparison, metric_number, segments)
        return views.segments(comparison, metric_number, segments, translations, open_heatmap)

    def _toggle_heatmap(
        self,
        comparison: ComparisonResult | None,
        metric_number: int,
        open_heatmap: views.OpenHeatmap | None,
        event: "gradio.EventData",
    ) -> views.OpenHeatmap | None:
        """Returns the heatmap of the translation that was clicked. Returns None to show no heatmap:
        if the one of this translation is shown already, or the result has expired."""
        if comparison is None:
            return None
        segment, system = int(event.segment), int(event.system)
        if open_heatmap is not None and open_heatmap.is_of(segment, system):
            return None
        scored_metric = comparison.metrics[metric_number]
        system_name = list(comparison.texts.systems)[system]
        columns = {name: [texts[segment]] for name, texts in comparison.texts.columns.items()}
        translation = comparison.texts.systems[system_name][segment]
        result = scored_metric.results[system_name]
        picture = heatmap(scored_metric.scorer, columns, translation, result, segment)
        return views.OpenHeatmap(segment, system, picture)


def build_page(metric: str | None = None, extra_metrics: Sequence[str] = ()) -> "gradio.Blocks":
    """Makes the page that compares systems, for `mtmetrics.page.theme.serve`. It offers the metrics
    whose models are on this machine. It asks no network.

    Args:
        metric: the only metric to offer, one of `mtmetrics.layout.metric_names`; None for all.
        extra_metrics: further metrics to offer, by their names on the command line.

    Raises:
        InputError: `metric` or one of `extra_metrics` is unknown.
        MissingExtraError: gradio or matplotlib is not installed.
        MTMetricsError: none of the metrics can run on this machine.
    """
    if metric is not None:
        metric_path(metric)  # refuses an unknown metric
    require_extra("app", "the page")
    require_extra("plot", "the page")
    # Gradio looks up the types of the handlers' arguments, such as ``gradio.EventData``, in the
    # globals of this module. The late import has to put the name there.
    import gradio

    globals()["gradio"] = gradio
    return _Page(metric, extra_metrics).build()


def _uploaded_or_pasted(name: str, path: str | None, text: str | None) -> TextInput:
    """Returns the source or the references, from a file or from a box.

    Raises:
        InputError: both hold a text.
    """
    if path is None:
        return TextInput(name, None, text or "")
    if (text or "").strip():
        raise InputError(f"{name}: both uploaded and pasted; remove one of the two")
    return TextInput(Path(path).name, path)


def _summary(texts: Texts | None) -> str:
    """Describes the texts in HTML; asks for texts if there are none."""
    if texts is None:
        return (
            "Upload or paste a source or references, and the translations of two or more systems."
        )
    columns = " and ".join(texts.columns)
    names = ", ".join(map(html.escape, texts.systems))
    count = f"{len(texts.systems)} system{'s' if len(texts.systems) > 1 else ''}"
    return f"<b>{texts.segments:,}</b> segments with {columns}, <b>{count}</b>: {names}."


@contextlib.contextmanager
def _folder_for_download() -> Iterator[Path]:
    """Makes a temporary folder for files that a handler yields.

    Gradio copies the files for the visitor before it resumes the handler, and keeps the copies for
    the time of ``delete_cache``.
    """
    with tempfile.TemporaryDirectory(prefix="mtmetrics-page-") as folder:
        yield Path(folder)


def _write_lines(path: Path, lines: Sequence[str]) -> str:
    """Writes lines to a file, and returns its path."""
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def _marked_translations(
    comparison: ComparisonResult, metric_number: int, segments: Sequence[int]
) -> dict[tuple[int, int], str]:
    """Returns the translations of some segments in HTML, with their wrong words marked.

    Returns:
        (Index of a segment, index of a system) -> HTML; empty if the metric finds no wrong words.
    """
    scorer = comparison.metrics[metric_number].scorer
    systems = list(comparison.texts.systems.values())
    positions = [(segment, system) for segment in segments for system in range(len(systems))]
    columns = {
        name: [texts[segment] for segment, _ in positions]
        for name, texts in comparison.texts.columns.items()
    }
    predictions = [systems[system][segment] for segment, system in positions]
    translations = mark_wrong_words(scorer, columns, predictions)
    return dict(zip(positions, translations, strict=True)) if translations else {}


def _page_count(comparison: ComparisonResult) -> int:
    """Returns the number of pages of segments."""
    return math.ceil(comparison.texts.segments / views.SEGMENTS_PER_PAGE)


def _nearest_page(
    page_number: float | None, comparison: ComparisonResult | None, step: int = 0
) -> int:
    """Returns the page that exists and is nearest to `page_number` + `step`. A missing page number
    counts as 1."""
    last = 1 if comparison is None else _page_count(comparison)
    return min(max(int(page_number or 1) + step, 1), last)
