"""The labelling page as a widget in notebooks, whose answers go to the estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gammagmm._support.checks import as_generator, check_count
from gammagmm.errors import MissingExtraError
from gammagmm.estimator.label_session import Asking, LabelSession
from gammagmm.report.label_view import LabelView, MessageError
from gammagmm.report.page import asset

if TYPE_CHECKING:
    from gammagmm.estimator.gamma_gmm import GammaGMM

__all__ = ["label_widget"]


class Answers:
    """The answers to the messages of a widget; the estimator has every label at once."""

    def __init__(self, estimator: GammaGMM, session: LabelSession, asking: Asking) -> None:
        self.estimator, self.session = estimator, session
        self._kept, self._sheet = session.fit, session.sheet
        table = session.fit.table
        self.view = LabelView(session, asking, save=lambda _: None, title=table.name or "")
        self.view.extend()
        self._sheet = session.sheet

    def answer(self, message: Any) -> dict[str, Any]:
        """The answer to a message of the widget."""
        fit = self.estimator.fit_
        if fit is not self._kept:  # the user has given labels elsewhere
            if fit.table is not self._kept.table:
                raise MessageError("The estimator was fitted again: call label() again.")
            self.session.rest_on(fit)
            self._kept = fit
        return self.view.handle(message)

    def keep(self) -> None:
        """Give the labels to the estimator, which learns its ranking from them."""
        if self.session.sheet.answers == self._sheet.answers:
            return
        self._sheet, self._kept = self.session.sheet, self.session.learn()
        self.estimator._keep(self._kept)


def label_widget(
    estimator: GammaGMM, n: int, asking: Asking, person: str, random_state: Any
) -> Any:
    """The widget for the rows of a fitted estimator; see `GammaGMM.label`."""
    try:
        from anywidget import AnyWidget
    except ImportError as error:
        raise MissingExtraError("label needs anywidget", "notebook") from error
    check_count("n", n, 1)
    rng: np.random.Generator = as_generator(random_state)
    session = LabelSession(estimator.fit_, n=n, person=person, rng=rng)
    answers = Answers(estimator, session, asking)
    look = {"_esm": asset("label.js"), "_css": asset("style.css") + asset("label.css")}
    widget = type("LabelWidget", (AnyWidget,), look)()

    def receive(_: Any, content: Any, __: Any) -> None:
        reply = {"id": content.get("id")}
        try:
            widget.send(reply | {"answer": answers.answer(content.get("message"))})
        except ValueError as error:
            widget.send(reply | {"error": str(error)})
            return
        answers.keep()  # after the reply: the person reads the next row meanwhile

    widget.on_msg(receive)
    return widget
